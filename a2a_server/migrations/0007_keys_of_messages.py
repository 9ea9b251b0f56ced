import django.contrib.postgres.fields
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("a2a_server", "0006_untold"),
    ]

    operations = [
        migrations.AddField(
            model_name="task",
            name="keys",
            field=django.contrib.postgres.fields.ArrayField(
                base_field=models.BigIntegerField(), db_default=[], default=list, editable=False, size=None
            ),
        ),
        migrations.RunSQL(
            "UPDATE a2a_server_task SET keys = ARRAY[key_id] WHERE key_id IS NOT NULL",
            "SET CONSTRAINTS ALL IMMEDIATE; UPDATE a2a_server_task SET key_id = keys[1] WHERE keys <> '{}'",
        ),
        migrations.RemoveField(model_name="task", name="key_id"),
    ]
