"""The policy can decide, on record, that a plan goes on without a step."""

import django.db.models.deletion
from django.db import migrations, models

import checkpoint.models.identifiers


class Migration(migrations.Migration):
    dependencies = [
        ("checkpoint", "0033_plan_laws"),
    ]

    operations = [
        migrations.CreateModel(
            name="Waiver",
            fields=[
                (
                    "id",
                    models.UUIDField(
                        default=checkpoint.models.identifiers.uuid7, editable=False, primary_key=True, serialize=False
                    ),
                ),
                (
                    "cause",
                    models.CharField(choices=[("failed", "Failed"), ("lacks_result", "Lacks Result")], max_length=20),
                ),
                ("reason", models.TextField()),
                ("waived_at", models.DateTimeField()),
                (
                    "policy_version",
                    models.ForeignKey(
                        db_index=False, on_delete=django.db.models.deletion.PROTECT, to="checkpoint.policyversion"
                    ),
                ),
                (
                    "step",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.PROTECT, related_name="waiver", to="checkpoint.step"
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(("cause__in", ["failed", "lacks_result"])), name="waiver_cause_known"
                    )
                ],
            },
        ),
    ]
