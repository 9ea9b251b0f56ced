"""Names columns by the field's terms: `retries` for repeated tries, `pending_report` for what is still to be told."""

from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("a2a_server", "0008_names")]

    operations = [
        migrations.RenameField("task", "tries", "retries"),
        migrations.RenameField("task", "untold", "pending_report"),
        migrations.RenameField("pushdelivery", "attempts", "retries"),
    ]
