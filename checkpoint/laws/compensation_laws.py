"""The laws of compensation as PostgreSQL triggers: only what took effect is undone, and only once (a unique index)."""

from __future__ import annotations

from collections.abc import Iterable

from checkpoint.laws import changed, law

_STEP = "checkpoint_step"

UNDOES_AN_EFFECT = """
CREATE FUNCTION checkpoint_undoes_an_effect() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF NOT EXISTS (SELECT FROM checkpoint_step WHERE id = NEW.compensates_id AND status = 'verified') THEN
    RAISE EXCEPTION 'checkpoint law undoes_an_effect: step % did not take effect', NEW.compensates_id
      USING ERRCODE = 'integrity_constraint_violation';
  END IF;
  RETURN NEW;
END $$;
"""


def install() -> Iterable[str]:
    """SQL by which a step undoes one that is verified, for ever the same one."""
    yield UNDOES_AN_EFFECT
    yield (
        f"CREATE TRIGGER law_undoes_an_effect BEFORE INSERT ON {_STEP} FOR EACH ROW"
        " WHEN (NEW.compensates_id IS NOT NULL) EXECUTE FUNCTION checkpoint_undoes_an_effect();"
    )
    yield law(_STEP, "compensates_is_fixed", "UPDATE", changed("compensates_id"))


def uninstall() -> Iterable[str]:
    """SQL that drops them."""
    yield "DROP FUNCTION checkpoint_undoes_an_effect() CASCADE;"
    yield f"DROP TRIGGER law_compensates_is_fixed ON {_STEP};"
