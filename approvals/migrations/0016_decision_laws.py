"""A case is decided only with the decision of a person, who is named in it."""

from django.db import migrations

# At the commit, because the decision is written after the case that it settles.
_DECIDED_HAS_DECISION = """
CREATE FUNCTION approvals_decided_has_decision() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF NOT EXISTS (SELECT FROM approvals_decision WHERE case_id = NEW.id) THEN
    RAISE EXCEPTION 'checkpoint law decided_has_decision: nobody decided case %', NEW.id
      USING ERRCODE = 'integrity_constraint_violation';
  END IF;
  RETURN NULL;
END $$;
"""
FUNCTIONS = {"approvals_decided_has_decision": _DECIDED_HAS_DECISION}

_TRIGGER = """
CREATE CONSTRAINT TRIGGER law_decided_has_decision AFTER UPDATE OF status ON checkpoint_case
  DEFERRABLE INITIALLY DEFERRED FOR EACH ROW WHEN (NEW.status = 'decided' AND OLD.status <> NEW.status)
  EXECUTE FUNCTION approvals_decided_has_decision();
"""


def install(apps, schema_editor):
    for function in FUNCTIONS.values():
        schema_editor.execute(function, params=None)
    schema_editor.execute(_TRIGGER, params=None)


def uninstall(apps, schema_editor):
    for name in FUNCTIONS:
        schema_editor.execute(f"DROP FUNCTION {name}() CASCADE")


class Migration(migrations.Migration):
    dependencies = [("approvals", "0015_notices_of_approvals"), ("checkpoint", "0003_laws")]
    operations = [migrations.RunPython(install, uninstall)]
