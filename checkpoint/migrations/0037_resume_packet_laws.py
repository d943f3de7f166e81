"""What an agent was given is written once and kept."""

from django.conf import settings
from django.db import migrations

from checkpoint import laws

TABLE = "checkpoint_resumepacket"


def install(apps, schema_editor):
    schema_editor.execute("\n".join(laws.append_only(TABLE)), params=None)
    schema_editor.execute(f'REVOKE UPDATE, DELETE, TRUNCATE ON {TABLE} FROM "{settings.CHECKPOINT_APP_ROLE}"')


def uninstall(apps, schema_editor):
    for law in ("append_only", "never_deleted", "never_truncated"):
        schema_editor.execute(f"DROP TRIGGER law_{law} ON {TABLE}")
    schema_editor.execute(f'GRANT UPDATE, DELETE ON {TABLE} TO "{settings.CHECKPOINT_APP_ROLE}"')


class Migration(migrations.Migration):
    dependencies = [("checkpoint", "0036_resume_packets")]
    operations = [migrations.RunPython(install, uninstall)]
