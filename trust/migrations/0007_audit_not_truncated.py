from django.db import migrations

# The function of 0004 refuses to change or delete a line. TRUNCATE fires no row trigger, so it needs its own trigger.
NEVER_EMPTIED = """
CREATE TRIGGER trust_auditentry_never_emptied BEFORE TRUNCATE ON trust_auditentry
    FOR EACH STATEMENT EXECUTE FUNCTION trust_auditentry_refuse();
"""
EMPTIED = "DROP TRIGGER trust_auditentry_never_emptied ON trust_auditentry"


class Migration(migrations.Migration):

    dependencies = [
        ('trust', '0006_what_was_shown'),
    ]

    operations = [
        migrations.RunSQL(NEVER_EMPTIED, EMPTIED),
    ]
