"""Adds a caller's stored tasks and the bytes of its files as columns."""

from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('trust', '0013_terms'),
    ]

    operations = [
        migrations.AddField(
            model_name='caller',
            name='inbox_bytes',
            field=models.PositiveBigIntegerField(db_default=0, default=0, editable=False),
        ),
        migrations.AddField(
            model_name='caller',
            name='stored_tasks',
            field=models.PositiveIntegerField(db_default=0, default=0, editable=False),
        ),
    ]
