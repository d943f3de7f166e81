"""Which shares a plan's approval has is written once."""

from django.db import migrations

from checkpoint import laws

TABLE = "checkpoint_approval"


def install(apps, schema_editor):
    schema_editor.execute("\n".join(laws.plan_approvals()), params=None)


def uninstall(apps, schema_editor):
    schema_editor.execute(f"DROP TRIGGER law_plan_is_fixed ON {TABLE}")


class Migration(migrations.Migration):
    dependencies = [("checkpoint", "0014_plan_approvals")]
    operations = [migrations.RunPython(install, uninstall)]
