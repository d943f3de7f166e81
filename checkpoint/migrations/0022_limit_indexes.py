"""Built beside the work that goes on, so outside a transaction."""

from django.contrib.postgres.operations import AddIndexConcurrently
from django.db import migrations, models


class Migration(migrations.Migration):
    atomic = False
    dependencies = [("checkpoint", "0021_limits")]

    operations = [
        AddIndexConcurrently(
            model_name="workflow",
            index=models.Index(
                condition=models.Q(("held_by__isnull", False)), fields=["held_by", "wake_at"], name="workflow_held"
            ),
        ),
        AddIndexConcurrently(
            model_name="step",
            index=models.Index(condition=models.Q(("status", "started")), fields=["tool_version"], name="step_started"),
        ),
    ]
