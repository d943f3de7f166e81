"""The laws of intents as PostgreSQL triggers: at most one step is ever sent under one.

A named intent changes its owner only while nothing was sent under it, and only its owner can start. Each reads what
the other wrote: whoever starts holds the intent's row (FOR SHARE), whoever passes it on changes that row.
"""

from __future__ import annotations

from collections.abc import Iterable

from checkpoint.laws import changed, law

_INTENT, _STEP = "checkpoint_intent", "checkpoint_step"

PASSES_UNSENT = """
CREATE FUNCTION checkpoint_intent_passes_unsent() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF OLD.name = '' OR EXISTS (
    SELECT FROM checkpoint_step WHERE id = OLD.owner_id
      AND (attempt_count > 0 OR status NOT IN ('prepared', 'abandoned', 'superseded'))) THEN
    RAISE EXCEPTION 'checkpoint law intent_passes_unsent: intent % has been sent by its owner', NEW.id
      USING ERRCODE = 'integrity_constraint_violation';
  END IF;
  IF NOT EXISTS (SELECT FROM checkpoint_step WHERE id = NEW.owner_id AND idempotency_key = NEW.key) THEN
    RAISE EXCEPTION 'checkpoint law intent_owner_has_key: step % has another key than intent %', NEW.owner_id, NEW.id
      USING ERRCODE = 'integrity_constraint_violation';
  END IF;
  RETURN NEW;
END $$;
"""

OWNER_STARTS = """
CREATE FUNCTION checkpoint_intent_owner_starts() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  PERFORM FROM checkpoint_intent WHERE owner_id = NEW.id FOR SHARE;
  IF NOT FOUND THEN
    RAISE EXCEPTION 'checkpoint law intent_owner_starts: step % does not own the intent that it names', NEW.id
      USING ERRCODE = 'integrity_constraint_violation';
  END IF;
  RETURN NEW;
END $$;
"""

RECEIPT_IS_OWNERS = """
CREATE FUNCTION checkpoint_receipt_is_owners() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF NOT EXISTS (
    SELECT FROM checkpoint_intent AS intent JOIN checkpoint_step AS owner ON owner.id = intent.owner_id
    WHERE NEW.intent_name <> '' AND intent.key = NEW.idempotency_key AND owner.id <> NEW.id
      AND owner.status = 'verified') THEN
    RAISE EXCEPTION 'checkpoint law receipt_is_owners: no verified step owns the intent of step %', NEW.id
      USING ERRCODE = 'integrity_constraint_violation';
  END IF;
  RETURN NEW;
END $$;
"""

FUNCTIONS = {
    "checkpoint_intent_passes_unsent": PASSES_UNSENT,
    "checkpoint_intent_owner_starts": OWNER_STARTS,
    "checkpoint_receipt_is_owners": RECEIPT_IS_OWNERS,
}
OF_ROWS = ((_INTENT, "identity_is_fixed"), (_STEP, "intent_name_is_fixed"))


def install(application_role: str) -> Iterable[str]:
    """SQL by which intents change their owner and nothing else, and only lawfully."""
    yield from FUNCTIONS.values()
    yield f"DROP TRIGGER IF EXISTS law_append_only ON {_INTENT};"
    yield law(_INTENT, "identity_is_fixed", "UPDATE", changed(*_IDENTITY))
    yield law(_STEP, "intent_name_is_fixed", "UPDATE", changed("intent_name"))
    yield _calls("checkpoint_intent_passes_unsent", f"OF owner_id ON {_INTENT}", changed("owner_id"))
    started = "NEW.status = 'started' AND OLD.status <> NEW.status AND NEW.intent_name <> ''"
    yield _calls("checkpoint_intent_owner_starts", f"OF status ON {_STEP}", started)
    yield _calls("checkpoint_receipt_is_owners", f"OF status ON {_STEP}", _TAKEN)
    yield f'REVOKE UPDATE ON {_INTENT} FROM "{application_role}";'
    yield f'GRANT UPDATE (owner_id) ON {_INTENT} TO "{application_role}";'


_IDENTITY = ("id", "team_id", "tool", "name", "key", "arguments_hash", "created_at")
_TAKEN = "OLD.status = 'prepared' AND NEW.status = 'verified'"


def _calls(function: str, on: str, broken_when: str) -> str:
    name = function.removeprefix("checkpoint_")
    return (
        f"CREATE TRIGGER law_{name} BEFORE UPDATE {on} FOR EACH ROW WHEN ({broken_when}) EXECUTE FUNCTION {function}();"
    )
