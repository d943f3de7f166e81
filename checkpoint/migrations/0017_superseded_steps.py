"""An edit puts another step of the same name into a step's place; a request can be sent back to the agent."""

from django.db import migrations, models

STEPS = ["planned", "prepared", "started", "committed", "verified", "failed", "uncertain", "abandoned"]
APPROVALS = ["pending", "approved", "consumed", "rejected"]
ENDED = ["expired", "withdrawn", "superseded"]


def known(statuses):
    return models.Q(status__in=statuses)


class Migration(migrations.Migration):
    dependencies = [("checkpoint", "0016_result_laws")]

    operations = [
        migrations.AlterField(
            model_name="approval",
            name="closing",
            field=models.TextField(blank=True, default="", help_text="How it ended, or what the agent is to change."),
        ),
        migrations.RemoveConstraint(model_name="step", name="step_name_once"),
        migrations.AddConstraint(
            model_name="step",
            constraint=models.UniqueConstraint(
                condition=models.Q(("status", "superseded"), _negated=True),
                fields=("workflow", "name"),
                name="step_name_once",
            ),
        ),
        migrations.RemoveConstraint(model_name="step", name="step_status_known"),
        migrations.AddConstraint(
            model_name="step",
            constraint=models.CheckConstraint(condition=known([*STEPS, "superseded"]), name="step_status_known"),
        ),
        migrations.RemoveConstraint(model_name="approval", name="approval_one_at_a_time"),
        migrations.AddConstraint(
            model_name="approval",
            constraint=models.UniqueConstraint(
                condition=known(["pending", "approved", "returned"]), fields=("step",), name="approval_one_at_a_time"
            ),
        ),
        migrations.RemoveConstraint(model_name="approval", name="approval_status_known"),
        migrations.AddConstraint(
            model_name="approval",
            constraint=models.CheckConstraint(
                condition=known([*APPROVALS, "returned", *ENDED]), name="approval_status_known"
            ),
        ),
    ]
