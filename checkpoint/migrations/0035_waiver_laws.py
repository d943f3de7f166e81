"""A waiver is about a step that ended without an effect; a workflow is completed by verified and waived steps."""

from django.conf import settings
from django.db import migrations

from checkpoint.laws import functions, waiver_laws

FUNCTIONS = ("checkpoint_waives_what_failed",)
OF_ROWS = ("append_only", "never_deleted", "never_truncated")


def install(apps, schema_editor):
    schema_editor.execute("\n".join(waiver_laws.install(settings.CHECKPOINT_APP_ROLE)), params=None)


def uninstall(apps, schema_editor):
    earlier = functions.WORKFLOW_END.replace("CREATE FUNCTION", "CREATE OR REPLACE FUNCTION")
    drop = [f"DROP TRIGGER law_{name} ON checkpoint_waiver;" for name in OF_ROWS]
    drop += [f"DROP FUNCTION {name}() CASCADE;" for name in FUNCTIONS]
    schema_editor.execute("\n".join([earlier, *drop]), params=None)


class Migration(migrations.Migration):
    dependencies = [("checkpoint", "0034_waivers")]
    operations = [migrations.RunPython(install, uninstall)]
