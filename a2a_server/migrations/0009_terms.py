"""Renames columns to the field's terms: `retries` counts repeated tries, `pending_report` holds an unsent report."""

from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("a2a_server", "0008_names")]

    operations = [
        migrations.RenameField("task", "tries", "retries"),
        migrations.RenameField("task", "untold", "pending_report"),
        migrations.RenameField("pushdelivery", "attempts", "retries"),
    ]
