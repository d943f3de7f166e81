"""A workflow can have a name by which its caller finds it again."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("checkpoint", "0041_agent_step_laws")]

    operations = [
        migrations.AddField(
            model_name="workflow",
            name="reference",
            field=models.CharField(blank=True, default="", help_text="What its caller calls it, once.", max_length=200),
        ),
        migrations.AddConstraint(
            model_name="workflow",
            constraint=models.UniqueConstraint(
                condition=~models.Q(reference=""), fields=("team", "reference"), name="workflow_reference_once"
            ),
        ),
    ]
