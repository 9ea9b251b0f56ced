"""Renames columns of a review by the field's terms: `thread` and `message_count`."""

from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("trust", "0012_names")]

    operations = [
        migrations.RenameField("review", "talk", "thread"),
        migrations.RenameField("review", "covers", "message_count"),
    ]
