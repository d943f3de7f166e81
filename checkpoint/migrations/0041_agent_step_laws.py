"""Who makes a step's call does not change; a workflow can come from its agent's turn to what a late receipt leads to."""

from django.db import migrations

from checkpoint.laws import agent_step_laws, arrow_laws


def install(apps, schema_editor):
    schema_editor.execute("\n".join([*arrow_laws.arrows_anew(), *agent_step_laws.install()]), params=None)


def uninstall(apps, schema_editor):
    """The arrows stay as they are: without steps of agents nothing moves along the new ones."""
    schema_editor.execute("\n".join(agent_step_laws.uninstall()), params=None)


class Migration(migrations.Migration):
    dependencies = [("checkpoint", "0040_agent_steps")]
    operations = [migrations.RunPython(install, uninstall)]
