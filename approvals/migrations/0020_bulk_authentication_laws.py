"""What a bulk job knows of its person's authentication is fixed once it has started."""

from django.db import migrations

from checkpoint.laws import changed, law

JOB = "approvals_bulkjob"
_ONCE_STARTED = f"OLD.started_at IS NOT NULL AND ({changed('authenticated_at')})"


def install(apps, schema_editor):
    fixed = law(JOB, "authentication_is_fixed", "UPDATE", _ONCE_STARTED)
    schema_editor.execute(fixed, params=None)


def uninstall(apps, schema_editor):
    schema_editor.execute(f"DROP TRIGGER law_authentication_is_fixed ON {JOB}")


class Migration(migrations.Migration):
    dependencies = [("approvals", "0019_notices_of_assignments"), ("checkpoint", "0003_laws")]
    operations = [
        # For a time 0018 made it.
        migrations.RunSQL(f"DROP TRIGGER IF EXISTS law_authentication_is_fixed ON {JOB}", migrations.RunSQL.noop),
        migrations.RunPython(install, uninstall),
    ]
