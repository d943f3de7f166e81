"""A step can ask a person; the question is a case."""

from django.db import migrations, models

REASONS = [
    "outcome_unknown", "inspection_inconclusive", "effect_not_visible", "conflicting_effect", "duplicate_effect",
    "retries_exhausted", "policy_changed", "prompt_changed", "tool_changed", "artifact_mismatch",
    "compensation_failed", "plan_invalid", "record_damaged", "human_task",
]  # fmt: skip


class Migration(migrations.Migration):
    dependencies = [("checkpoint", "0028_intent_laws")]

    operations = [
        migrations.RemoveConstraint(model_name="case", name="case_reason_known"),
        migrations.AddConstraint(
            model_name="case",
            constraint=models.CheckConstraint(condition=models.Q(reason__in=REASONS), name="case_reason_known"),
        ),
    ]
