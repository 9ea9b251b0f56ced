"""Names columns by the field's terms: a review's `thread`, and how many messages it holds."""

from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("trust", "0012_names")]

    operations = [
        migrations.RenameField("review", "talk", "thread"),
        migrations.RenameField("review", "covers", "message_count"),
    ]
