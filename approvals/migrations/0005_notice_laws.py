"""A notice and each try at sending it are kept; what they are about, and how a try ended, is written once."""

from django.conf import settings
from django.db import migrations

from checkpoint import laws

NOTICE, DELIVERY = "approvals_notice", "approvals_delivery"


def changed(*columns):
    return " OR ".join(f"NEW.{column} IS DISTINCT FROM OLD.{column}" for column in columns)


LAWS = {
    (NOTICE, "notice_is_fixed"): (
        changed("id", "kind", "workflow_id", "case_id", "approval_id", "channel_id", "recipient", "created_at")
        # Only the link to an erased account may be cut.
        + " OR NEW.person_id IS NOT NULL AND NEW.person_id IS DISTINCT FROM OLD.person_id"
    ),
    (NOTICE, "attempts_never_fall"): "NEW.attempt_count < OLD.attempt_count",
    (DELIVERY, "body_is_fixed"): changed("id", "notice_id", "number", "started_at"),
    (DELIVERY, "ending_is_final"): f"OLD.ended_at IS NOT NULL AND ({changed('ended_at', 'delivered', 'detail')})",
}


def install(apps, schema_editor):
    for (table, name), broken_when in LAWS.items():
        schema_editor.execute(
            f"CREATE TRIGGER law_{name} BEFORE UPDATE ON {table} FOR EACH ROW WHEN ({broken_when})"
            f" EXECUTE FUNCTION checkpoint_refuse('{name}')"
        )
    for table in (NOTICE, DELIVERY):
        schema_editor.execute("\n".join(laws.never_deleted(table)), params=None)
        schema_editor.execute(f'REVOKE DELETE, TRUNCATE ON {table} FROM "{settings.CHECKPOINT_APP_ROLE}"')
        # Room for heap-only updates: each row is updated once or twice soon after it was written.
        schema_editor.execute(f"ALTER TABLE {table} SET (fillfactor = 70)")


def uninstall(apps, schema_editor):
    for table, name in LAWS:
        schema_editor.execute(f"DROP TRIGGER law_{name} ON {table}")
    for table in (NOTICE, DELIVERY):
        for name in ("never_deleted", "never_truncated"):
            schema_editor.execute(f"DROP TRIGGER law_{name} ON {table}")
        schema_editor.execute(f'GRANT DELETE ON {table} TO "{settings.CHECKPOINT_APP_ROLE}"')
        schema_editor.execute(f"ALTER TABLE {table} RESET (fillfactor)")


class Migration(migrations.Migration):
    dependencies = [("approvals", "0004_notices"), ("checkpoint", "0003_laws")]
    operations = [migrations.RunPython(install, uninstall)]
