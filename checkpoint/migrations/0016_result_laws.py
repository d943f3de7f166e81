"""A receipt is the step's own, a verified result stands, who submitted stays known, and migrations are the owner's."""

from django.conf import settings
from django.db import migrations

from checkpoint import laws

FUNCTIONS = tuple(laws.RESULT_FUNCTIONS)
OF_ROWS = (
    ("checkpoint_step", "begins_without_receipt"),
    ("checkpoint_step", "verified_stands"),
    ("checkpoint_workflow", "submitter_is_fixed"),
)
CHANGE = "INSERT, UPDATE, DELETE"


def install(apps, schema_editor):
    schema_editor.execute("\n".join(laws.results()), params=None)
    schema_editor.execute(f'REVOKE {CHANGE} ON django_migrations FROM "{settings.CHECKPOINT_APP_ROLE}"')


def uninstall(apps, schema_editor):
    for name in FUNCTIONS:
        schema_editor.execute(f"DROP FUNCTION {name}() CASCADE")
    for table, law in OF_ROWS:
        schema_editor.execute(f"DROP TRIGGER law_{law} ON {table}")
    schema_editor.execute(f'GRANT {CHANGE} ON django_migrations TO "{settings.CHECKPOINT_APP_ROLE}"')


class Migration(migrations.Migration):
    dependencies = [("checkpoint", "0015_plan_approval_laws")]
    operations = [migrations.RunPython(install, uninstall)]
