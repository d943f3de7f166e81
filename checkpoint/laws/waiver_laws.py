"""The laws of waivers as PostgreSQL triggers: a plan is done without a step only by a decision that is on record."""

from __future__ import annotations

from collections.abc import Iterable

from checkpoint.laws import append_only
from checkpoint.laws.functions import workflow_end

_WAIVER = "checkpoint_waiver"

WORKFLOW_END = workflow_end(
    "status NOT IN ('verified', 'superseded') AND NOT (status = 'abandoned' AND EXISTS (\n"
    "      SELECT FROM checkpoint_waiver WHERE step_id = checkpoint_step.id))"
)

WAIVES_WHAT_FAILED = """
CREATE FUNCTION checkpoint_waives_what_failed() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF NOT EXISTS (
    SELECT FROM checkpoint_step WHERE id = NEW.step_id AND status = 'abandoned' AND NOT EXISTS (
      SELECT FROM checkpoint_attempt WHERE step_id = NEW.step_id AND applied IS DISTINCT FROM false)) THEN
    RAISE EXCEPTION 'checkpoint law waives_what_failed: step % has not ended, or may have taken effect', NEW.step_id
      USING ERRCODE = 'integrity_constraint_violation';
  END IF;
  -- A workflow that winds down goes on without nothing. Its row is locked, so that neither begins meanwhile.
  PERFORM FROM checkpoint_workflow
    WHERE id = (SELECT workflow_id FROM checkpoint_step WHERE id = NEW.step_id)
      AND NOT winding_down AND status NOT IN ('completed', 'abandoned') FOR UPDATE;
  IF NOT FOUND THEN
    RAISE EXCEPTION 'checkpoint law waives_in_a_living_plan: the workflow of step % has ended or is ending', NEW.step_id
      USING ERRCODE = 'integrity_constraint_violation';
  END IF;
  RETURN NEW;
END $$;
"""


def install(application_role: str) -> Iterable[str]:
    """SQL by which a waiver is about a step that ended without an effect, stands for ever, and lets its plan end."""
    yield WORKFLOW_END.replace("CREATE FUNCTION", "CREATE OR REPLACE FUNCTION")
    yield WAIVES_WHAT_FAILED
    yield (
        f"CREATE TRIGGER law_waives_what_failed BEFORE INSERT ON {_WAIVER} FOR EACH ROW"
        " EXECUTE FUNCTION checkpoint_waives_what_failed();"
    )
    yield from append_only(_WAIVER)
    yield f'REVOKE UPDATE, DELETE, TRUNCATE ON {_WAIVER} FROM "{application_role}";'
