"""Only what took effect is undone, and a step undoes the same one for ever."""

from django.db import migrations

from checkpoint.laws import compensation_laws

FUNCTIONS = ("checkpoint_undoes_an_effect",)


def install(apps, schema_editor):
    schema_editor.execute("\n".join(compensation_laws.install()), params=None)


def uninstall(apps, schema_editor):
    schema_editor.execute("\n".join(compensation_laws.uninstall()), params=None)


class Migration(migrations.Migration):
    dependencies = [("checkpoint", "0030_compensating_steps")]
    operations = [migrations.RunPython(install, uninstall)]
