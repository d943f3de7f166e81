"""An approval's request is written once and kept; its status moves along the arrows of `states.py` only."""

from django.conf import settings
from django.db import migrations

from checkpoint import laws

TABLE = "checkpoint_approval"
LAWS = (
    "initial_states_only",
    "legal_arrows_only",
    "request_is_fixed",
    "closing_is_final",
    "never_deleted",
    "never_truncated",
)


def install(apps, schema_editor):
    schema_editor.execute("\n".join(laws.approvals()), params=None)
    schema_editor.execute(f'REVOKE DELETE, TRUNCATE ON {TABLE} FROM "{settings.CHECKPOINT_APP_ROLE}"')


def uninstall(apps, schema_editor):
    for law in LAWS:
        schema_editor.execute(f"DROP TRIGGER law_{law} ON {TABLE}")


class Migration(migrations.Migration):
    dependencies = [("checkpoint", "0008_approvals")]
    operations = [migrations.RunPython(install, uninstall)]
