"""It is the agent's turn until a time, and then people are asked."""

from django.db import migrations, models

REASONS = [
    "outcome_unknown", "inspection_inconclusive", "effect_not_visible", "conflicting_effect", "duplicate_effect",
    "retries_exhausted", "policy_changed", "prompt_changed", "tool_changed", "artifact_mismatch",
    "compensation_failed", "plan_invalid", "record_damaged", "human_task", "agent_silent",
]  # fmt: skip

# Those that wait already get their time when they are looked at next.
WAKE = "UPDATE checkpoint_workflow SET wake_at = checkpoint_now() WHERE status = 'awaiting_agent'"


class Migration(migrations.Migration):
    dependencies = [("checkpoint", "0031_compensation_laws")]

    operations = [
        migrations.AddField(
            model_name="workflow",
            name="agent_seconds",
            field=models.PositiveIntegerField(help_text="How long it waits for its agent; null: policy.", null=True),
        ),
        migrations.AddField(
            model_name="workflow",
            name="agent_due_at",
            field=models.DateTimeField(help_text="While it is the agent's turn: when people are asked.", null=True),
        ),
        migrations.RemoveConstraint(model_name="case", name="case_reason_known"),
        migrations.AddConstraint(
            model_name="case",
            constraint=models.CheckConstraint(condition=models.Q(reason__in=REASONS), name="case_reason_known"),
        ),
        migrations.RunSQL(WAKE, migrations.RunSQL.noop),
    ]
