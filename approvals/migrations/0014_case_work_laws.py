"""What people say, sign and bring is kept as it was; how long they looked after or put aside a case ends once."""

from django.conf import settings
from django.db import migrations

from checkpoint import laws

APPEND_ONLY = ("approvals_comment", "approvals_attachment", "approvals_escalation")
ASSIGNMENT, SNOOZE = "approvals_assignment", "approvals_snooze"


def changed(*columns):
    return " OR ".join(f"NEW.{column} IS DISTINCT FROM OLD.{column}" for column in columns)


# Only the link to an erased account may be cut.
UNCUT = " OR NEW.person_id IS NOT NULL AND NEW.person_id IS DISTINCT FROM OLD.person_id"
LAWS = {
    (ASSIGNMENT, "body_is_fixed"): (
        changed("id", "case_id", "person_name", "assigned_by_name", "channel", "reason", "assigned_at") + UNCUT
    ),
    (ASSIGNMENT, "ending_is_final"): f"OLD.ended_at IS NOT NULL AND ({changed('ended_at')})",
    (SNOOZE, "body_is_fixed"): (
        changed("id", "case_id", "reason", "person_name", "channel", "snoozed_at", "ends_at") + UNCUT
    ),
    (SNOOZE, "ending_is_final"): f"OLD.woken_at IS NOT NULL AND ({changed('woken_at', 'woken_by_name')})",
}


def install(apps, schema_editor):
    role = settings.CHECKPOINT_APP_ROLE
    for table in APPEND_ONLY:
        schema_editor.execute("\n".join(laws.append_only(table, erasable="person_id")), params=None)
        schema_editor.execute(f'REVOKE UPDATE, DELETE, TRUNCATE ON {table} FROM "{role}"')
        schema_editor.execute(f'GRANT UPDATE (person_id) ON {table} TO "{role}"')
    for (table, name), broken_when in LAWS.items():
        schema_editor.execute(
            f"CREATE TRIGGER law_{name} BEFORE UPDATE ON {table} FOR EACH ROW WHEN ({broken_when})"
            f" EXECUTE FUNCTION checkpoint_refuse('{name}')"
        )
    for table in (ASSIGNMENT, SNOOZE):
        schema_editor.execute("\n".join(laws.never_deleted(table)), params=None)
        schema_editor.execute(f'REVOKE DELETE, TRUNCATE ON {table} FROM "{role}"')


def uninstall(apps, schema_editor):
    role = settings.CHECKPOINT_APP_ROLE
    for table in APPEND_ONLY:
        schema_editor.execute(f"DROP TRIGGER law_append_only ON {table}")
        schema_editor.execute(f'GRANT UPDATE ON {table} TO "{role}"')
    for table, name in LAWS:
        schema_editor.execute(f"DROP TRIGGER law_{name} ON {table}")
    for table in (*APPEND_ONLY, ASSIGNMENT, SNOOZE):
        for name in ("never_deleted", "never_truncated"):
            schema_editor.execute(f"DROP TRIGGER law_{name} ON {table}")
        schema_editor.execute(f'GRANT DELETE ON {table} TO "{role}"')


class Migration(migrations.Migration):
    dependencies = [("approvals", "0013_case_work"), ("checkpoint", "0003_laws")]
    operations = [migrations.RunPython(install, uninstall)]
