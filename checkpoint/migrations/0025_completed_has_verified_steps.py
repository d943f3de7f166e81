"""A workflow is completed by steps that were verified, not by such as an edit put aside."""

from django.db import migrations

from checkpoint.laws import functions


def install(apps, schema_editor):
    anew = functions.COMPLETED_HAS_STEPS.replace("CREATE FUNCTION", "CREATE OR REPLACE FUNCTION")
    schema_editor.execute(anew, params=None)


class Migration(migrations.Migration):
    """Backwards the law stays: no workflow could be completed that it refuses, but by hand."""

    dependencies = [("checkpoint", "0024_api_tokens_and_kept_replies")]
    operations = [migrations.RunPython(install, migrations.RunPython.noop)]
