"""The arrow of a taken receipt, and the laws by which a named intent has one sender."""

from django.conf import settings
from django.db import migrations

from checkpoint import laws
from checkpoint.laws import arrow_laws, intent_laws

INTENT = "checkpoint_intent"
FUNCTIONS = intent_laws.FUNCTIONS


def install(apps, schema_editor):
    lines = [*arrow_laws.arrows_anew(), *intent_laws.install(settings.CHECKPOINT_APP_ROLE)]
    schema_editor.execute("\n".join(lines), params=None)


def uninstall(apps, schema_editor):
    """The arrows stay as they are: without named intents nothing moves along the new one."""
    for name in intent_laws.FUNCTIONS:
        schema_editor.execute(f"DROP FUNCTION {name}() CASCADE")
    for table, law in intent_laws.OF_ROWS:
        schema_editor.execute(f"DROP TRIGGER law_{law} ON {table}")
    schema_editor.execute(laws.law(INTENT, "append_only", "UPDATE"))
    schema_editor.execute(f'REVOKE UPDATE (owner_id) ON {INTENT} FROM "{settings.CHECKPOINT_APP_ROLE}"')


class Migration(migrations.Migration):
    dependencies = [("checkpoint", "0027_named_intents")]
    operations = [migrations.RunPython(install, uninstall)]
