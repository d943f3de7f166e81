"""Anchors and what they state are written once and kept."""

from django.conf import settings
from django.db import migrations

from checkpoint import laws

TABLES = ("checkpoint_auditanchor", "checkpoint_anchoredhead")


def install(apps, schema_editor):
    for table in TABLES:
        schema_editor.execute("\n".join(laws.append_only(table)), params=None)
        schema_editor.execute(f'REVOKE UPDATE, DELETE, TRUNCATE ON {table} FROM "{settings.CHECKPOINT_APP_ROLE}"')


def uninstall(apps, schema_editor):
    for table in TABLES:
        for law in ("append_only", "never_deleted", "never_truncated"):
            schema_editor.execute(f"DROP TRIGGER law_{law} ON {table}")
        schema_editor.execute(f'GRANT UPDATE, DELETE ON {table} TO "{settings.CHECKPOINT_APP_ROLE}"')


class Migration(migrations.Migration):
    dependencies = [("checkpoint", "0010_audit_anchors")]
    operations = [migrations.RunPython(install, uninstall)]
