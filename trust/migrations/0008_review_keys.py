import django.contrib.postgres.fields
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("trust", "0007_audit_not_truncated"),
    ]

    operations = [
        migrations.AddField(
            model_name="review",
            name="keys",
            field=django.contrib.postgres.fields.ArrayField(
                base_field=models.BigIntegerField(), default=list, editable=False, size=None
            ),
        ),
        migrations.RunSQL(
            "UPDATE trust_review SET keys = ARRAY[key_id] WHERE key_id IS NOT NULL",
            # Constraints are checked at once, since PostgreSQL can't alter a table with deferred checks pending.
            # A key that was deleted since can't be restored.
            "SET CONSTRAINTS ALL IMMEDIATE; UPDATE trust_review SET key_id = keys[1]"
            " WHERE EXISTS (SELECT FROM trust_callerkey WHERE id = keys[1])",
        ),
        migrations.RemoveField(model_name="review", name="key"),
    ]
