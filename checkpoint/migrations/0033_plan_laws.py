"""What was sealed stays so, and only a sealed plan is completed."""

from django.db import migrations

from checkpoint.laws import plan_laws


def install(apps, schema_editor):
    schema_editor.execute("\n".join(plan_laws.install()), params=None)


def uninstall(apps, schema_editor):
    schema_editor.execute("\n".join(plan_laws.uninstall()), params=None)


class Migration(migrations.Migration):
    dependencies = [("checkpoint", "0032_waiting_for_agents")]
    operations = [migrations.RunPython(install, uninstall)]
