"""The laws of `laws.py`, as they are when this migration runs; a test compares them with `states.py`."""

from django.conf import settings
from django.db import migrations

from checkpoint import laws


def install(apps, schema_editor):
    schema_editor.execute(laws.install(settings.CHECKPOINT_APP_ROLE), params=None)
    # Room for heap-only updates: these rows are updated several times each.
    schema_editor.execute("ALTER TABLE checkpoint_step SET (fillfactor = 60)")
    schema_editor.execute("ALTER TABLE checkpoint_workflow SET (fillfactor = 60)")
    schema_editor.execute("ALTER TABLE checkpoint_attempt SET (fillfactor = 70)")
    schema_editor.execute("ALTER TABLE checkpoint_auditstream SET (fillfactor = 50)")


def uninstall(apps, schema_editor):
    schema_editor.execute(laws.uninstall(), params=None)
    for table in ("step", "workflow", "attempt", "auditstream"):
        schema_editor.execute(f"ALTER TABLE checkpoint_{table} RESET (fillfactor)")


class Migration(migrations.Migration):
    dependencies = [("checkpoint", "0002_record")]
    operations = [migrations.RunPython(install, uninstall)]
