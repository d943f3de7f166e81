"""A signature is written once and kept; only the link to an erased account may be cut."""

from django.conf import settings
from django.db import migrations

from checkpoint import laws

TABLE = "approvals_signature"


def install(apps, schema_editor):
    role = settings.CHECKPOINT_APP_ROLE
    schema_editor.execute("\n".join(laws.append_only(TABLE, erasable="person_id")), params=None)
    schema_editor.execute(f'REVOKE UPDATE, DELETE, TRUNCATE ON {TABLE} FROM "{role}"')
    schema_editor.execute(f'GRANT UPDATE (person_id) ON {TABLE} TO "{role}"')


def uninstall(apps, schema_editor):
    for law in ("append_only", "never_deleted", "never_truncated"):
        schema_editor.execute(f"DROP TRIGGER law_{law} ON {TABLE}")


class Migration(migrations.Migration):
    dependencies = [("approvals", "0007_approvals"), ("checkpoint", "0003_laws")]
    operations = [migrations.RunPython(install, uninstall)]
