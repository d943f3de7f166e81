"""The functions that triggers of the laws call: what refuses, and what has to look at other rows first."""

from __future__ import annotations

REFUSE = """
CREATE FUNCTION checkpoint_refuse() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  RAISE EXCEPTION 'checkpoint law %: % on % is refused', TG_ARGV[0], TG_OP, TG_TABLE_NAME
    USING ERRCODE = 'integrity_constraint_violation';
END $$;
"""

_WORKFLOW_END = """
CREATE FUNCTION checkpoint_workflow_may_end() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  -- The UPDATE that fires this holds the workflow's row lock, and so does whoever adds a step. An older snapshot would
  -- not see a step that was added before the lock was taken.
  IF current_setting('transaction_isolation') NOT IN ('read committed', 'read uncommitted') THEN
    RAISE EXCEPTION 'checkpoint law ends_in_read_committed: workflow % cannot end in a transaction that reads the past',
      NEW.id USING ERRCODE = 'integrity_constraint_violation';
  END IF;
  IF NEW.status = 'completed' AND EXISTS (
    SELECT FROM checkpoint_step WHERE workflow_id = NEW.id AND {undone}) THEN
    RAISE EXCEPTION 'checkpoint law completed_means_verified: workflow % has steps that are not verified', NEW.id
      USING ERRCODE = 'integrity_constraint_violation';
  END IF;
  -- Every step has ended, not only those in the air: what could still start would start in a workflow that has ended.
  IF NEW.status = 'abandoned' AND EXISTS (
    SELECT FROM checkpoint_step
    WHERE workflow_id = NEW.id AND status NOT IN ('verified', 'abandoned', 'superseded')) THEN
    RAISE EXCEPTION 'checkpoint law abandoned_means_settled: workflow % has steps that have not ended', NEW.id
      USING ERRCODE = 'integrity_constraint_violation';
  END IF;
  RETURN NEW;
END $$;
"""


def workflow_end(undone: str) -> str:
    """SQL of the function that says whether a workflow may end. `undone` says which steps keep it from completion."""
    return _WORKFLOW_END.replace("{undone}", undone)


# Before steps could be waived; the present one is in `waiver_laws`.
WORKFLOW_END = workflow_end("status NOT IN ('verified', 'superseded')")

STEP_INTO_OPEN_WORKFLOW = """
CREATE FUNCTION checkpoint_step_enters_open_workflow() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  -- Materialised: PostgreSQL would look for ended workflows first, find none in its snapshot and lock nothing.
  IF EXISTS (
    WITH workflow AS MATERIALIZED (
      SELECT status FROM checkpoint_workflow
      WHERE id IN (SELECT workflow_id FROM arrived) ORDER BY id FOR UPDATE)
    SELECT FROM workflow WHERE status IN ('completed', 'abandoned')) THEN
    RAISE EXCEPTION 'checkpoint law ended_is_ended: a step was added to a workflow that has ended'
      USING ERRCODE = 'integrity_constraint_violation';
  END IF;
  RETURN NULL;
END $$;
"""

COMPLETED_HAS_STEPS = """
CREATE FUNCTION checkpoint_completed_has_steps() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF NOT EXISTS (SELECT FROM checkpoint_step WHERE workflow_id = NEW.id AND status = 'verified') THEN
    RAISE EXCEPTION 'checkpoint law completed_has_steps: workflow % has no steps that were verified', NEW.id
      USING ERRCODE = 'integrity_constraint_violation';
  END IF;
  RETURN NEW;
END $$;
"""

RECEIPT_OF_OWN_STEP = """
CREATE FUNCTION checkpoint_receipt_of_own_step() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF NOT EXISTS (SELECT FROM checkpoint_evidence WHERE id = NEW.receipt_id AND step_id = NEW.id) THEN
    RAISE EXCEPTION 'checkpoint law receipt_of_own_step: evidence % is not about step %', NEW.receipt_id, NEW.id
      USING ERRCODE = 'integrity_constraint_violation';
  END IF;
  RETURN NEW;
END $$;
"""

SUBMITTER_IS_ERASED = """
CREATE FUNCTION checkpoint_submitter_is_erased() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  -- At the commit, because whoever erases an account cuts the links to it first.
  IF EXISTS (SELECT FROM auth_user WHERE id = OLD.submitted_by_id) THEN
    RAISE EXCEPTION 'checkpoint law submitter_is_erased: who submitted workflow % still has an account', NEW.id
      USING ERRCODE = 'integrity_constraint_violation';
  END IF;
  RETURN NULL;
END $$;
"""

# Those that came with `results`; the first ones are in FUNCTIONS.
RESULT_FUNCTIONS = {
    "checkpoint_completed_has_steps": COMPLETED_HAS_STEPS,
    "checkpoint_receipt_of_own_step": RECEIPT_OF_OWN_STEP,
    "checkpoint_submitter_is_erased": SUBMITTER_IS_ERASED,
}

FUNCTIONS = {
    "checkpoint_refuse": REFUSE,
    "checkpoint_workflow_may_end": WORKFLOW_END,
    "checkpoint_step_enters_open_workflow": STEP_INTO_OPEN_WORKFLOW,
}
