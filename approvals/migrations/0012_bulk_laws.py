"""A bulk job acts on what was frozen, only while it runs, and is done when every item has its result."""

from django.conf import settings
from django.db import migrations

from approvals.bulk.states import BULK_JOB_ARROWS, BULK_JOB_INITIAL
from checkpoint import laws
from checkpoint.laws import changed, law

JOB, ITEM = "approvals_bulkjob", "approvals_bulkitem"

# What one row can see of itself. Only the link to an erased account may be cut.
_OF_ROWS = (
    (
        JOB,
        "job_is_fixed",
        "UPDATE",
        changed("id", "person_name", "channel", "kind", "reason", "filter", "matched", "count", "cap", "frozen_at")
        + " OR NEW.person_id IS NOT NULL AND NEW.person_id IS DISTINCT FROM OLD.person_id",
    ),
    (
        JOB,
        "ending_is_final",
        "UPDATE",
        f"OLD.ended_at IS NOT NULL AND ({changed('started_at', 'ended_at', 'aborted_by')})",
    ),
    (ITEM, "begins_pending", "INSERT", "NEW.result <> 'pending'"),
    (
        ITEM,
        "item_is_frozen",
        "UPDATE",
        changed("id", "job_id", "number", "case_id", "approval_id", "step_version", "arguments_hash"),
    ),
    (
        ITEM,
        "result_is_final",
        "UPDATE",
        f"OLD.result <> 'pending' AND ({changed('result', 'message', 'decision_id', 'at')})",
    ),
)

# FOR SHARE waits for whoever is just starting, aborting or finishing the job, and makes them wait for this row.
_ITEM_OF_JOB = """
CREATE FUNCTION approvals_bulk_item_of_job() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE found text;
BEGIN
  SELECT status INTO found FROM approvals_bulkjob WHERE id = NEW.job_id FOR SHARE;
  IF found <> TG_ARGV[1] THEN
    RAISE EXCEPTION 'checkpoint law %: the bulk job of item % is %', TG_ARGV[0], NEW.number, found
      USING ERRCODE = 'integrity_constraint_violation';
  END IF;
  RETURN NEW;
END $$;
"""
_JOB_OF_ITEMS = """
CREATE FUNCTION approvals_bulk_job_of_items() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE present integer; pending integer;
BEGIN
  SELECT count(*), count(*) FILTER (WHERE result = 'pending') INTO present, pending
    FROM approvals_bulkitem WHERE job_id = NEW.id;
  IF present <> NEW.count THEN
    RAISE EXCEPTION 'checkpoint law shown_is_acted_on: bulk job % shows % items and has %', NEW.id, NEW.count, present
      USING ERRCODE = 'integrity_constraint_violation';
  END IF;
  IF NEW.status = 'done' AND pending > 0 THEN
    RAISE EXCEPTION 'checkpoint law done_means_answered: bulk job % has % items without a result', NEW.id, pending
      USING ERRCODE = 'integrity_constraint_violation';
  END IF;
  RETURN NEW;
END $$;
"""
FUNCTIONS = {"approvals_bulk_item_of_job": _ITEM_OF_JOB, "approvals_bulk_job_of_items": _JOB_OF_ITEMS}

_OF_BOTH = f"""
CREATE TRIGGER law_selection_is_frozen BEFORE INSERT ON {ITEM} FOR EACH ROW
  EXECUTE FUNCTION approvals_bulk_item_of_job('selection_is_frozen', 'draft');
CREATE TRIGGER law_answers_while_running BEFORE UPDATE OF result ON {ITEM} FOR EACH ROW
  WHEN (NEW.result <> OLD.result) EXECUTE FUNCTION approvals_bulk_item_of_job('answers_while_running', 'running');
CREATE TRIGGER law_shown_is_acted_on BEFORE UPDATE OF status ON {JOB} FOR EACH ROW
  WHEN (NEW.status IN ('running', 'done') AND NEW.status <> OLD.status) EXECUTE FUNCTION approvals_bulk_job_of_items();
"""


def install(apps, schema_editor):
    for function in FUNCTIONS.values():
        schema_editor.execute(function, params=None)
    schema_editor.execute("\n".join(laws.status_laws(JOB, BULK_JOB_INITIAL, BULK_JOB_ARROWS)), params=None)
    schema_editor.execute("\n".join(law(*of_row) for of_row in _OF_ROWS), params=None)
    schema_editor.execute(_OF_BOTH, params=None)
    for table in (JOB, ITEM):
        schema_editor.execute("\n".join(laws.never_deleted(table)), params=None)
        schema_editor.execute(f'REVOKE DELETE, TRUNCATE ON {table} FROM "{settings.CHECKPOINT_APP_ROLE}"')


def uninstall(apps, schema_editor):
    for name in FUNCTIONS:
        schema_editor.execute(f"DROP FUNCTION {name}() CASCADE")
    of_rows = [(table, name) for table, name, *_ in _OF_ROWS]
    of_tables = [(table, name) for table in (JOB, ITEM) for name in ("never_deleted", "never_truncated")]
    for table, name in [*of_rows, *of_tables, (JOB, "initial_states_only"), (JOB, "legal_arrows_only")]:
        schema_editor.execute(f"DROP TRIGGER law_{name} ON {table}")
    for table in (JOB, ITEM):
        schema_editor.execute(f'GRANT DELETE ON {table} TO "{settings.CHECKPOINT_APP_ROLE}"')


class Migration(migrations.Migration):
    dependencies = [("approvals", "0011_bulk_jobs"), ("checkpoint", "0003_laws")]
    operations = [migrations.RunPython(install, uninstall)]
