"""A person's answer to a task: what was filled in is the step's receipt."""

from django.db import migrations, models

KINDS = ["confirm", "retry", "abandon", "continue", "acknowledge", "answer", "approve", "reject", "request_changes"]


class Migration(migrations.Migration):
    dependencies = [("approvals", "0020_bulk_authentication_laws"), ("checkpoint", "0029_human_tasks")]

    operations = [
        migrations.RemoveConstraint(model_name="decision", name="decision_kind_known"),
        migrations.AddConstraint(
            model_name="decision",
            constraint=models.CheckConstraint(condition=models.Q(kind__in=KINDS), name="decision_kind_known"),
        ),
    ]
