"""A third answer to a request for approval: send it back to the agent."""

from django.db import migrations, models

KINDS = ["confirm", "retry", "abandon", "continue", "acknowledge", "approve", "reject", "request_changes"]


class Migration(migrations.Migration):
    dependencies = [("approvals", "0016_decision_laws"), ("checkpoint", "0018_superseded_laws")]

    operations = [
        migrations.RemoveConstraint(model_name="decision", name="decision_kind_known"),
        migrations.AddConstraint(
            model_name="decision",
            constraint=models.CheckConstraint(condition=models.Q(kind__in=KINDS), name="decision_kind_known"),
        ),
    ]
