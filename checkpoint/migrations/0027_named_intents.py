"""Steps can name the effect that they want; those of one name wait for the one that brings it about."""

import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("checkpoint", "0026_given_under_laws"),
    ]

    operations = [
        migrations.RemoveConstraint(
            model_name="evidence",
            name="evidence_kind_known",
        ),
        migrations.AddField(
            model_name="intent",
            name="name",
            field=models.CharField(blank=True, default="", max_length=200),
        ),
        migrations.AddField(
            model_name="intent",
            name="tool",
            field=models.CharField(blank=True, default="", help_text="Of a named intent.", max_length=100),
        ),
        migrations.AddField(
            model_name="step",
            name="intent_name",
            field=models.CharField(blank=True, default="", help_text="What its caller calls it.", max_length=200),
        ),
        migrations.AddField(
            model_name="step",
            name="waits_for",
            field=models.ForeignKey(
                db_index=False,
                null=True,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="waiting",
                to="checkpoint.intent",
            ),
        ),
        migrations.AlterField(
            model_name="evidence",
            name="kind",
            field=models.CharField(
                choices=[
                    ("response", "Response"),
                    ("inspection", "Inspection"),
                    ("verification", "Verification"),
                    ("attestation", "Attestation"),
                    ("drift", "Drift"),
                    ("late_receipt", "Late Receipt"),
                    ("flight_record", "Flight Record"),
                    ("intent", "Intent"),
                ],
                max_length=20,
            ),
        ),
        migrations.AddIndex(
            model_name="step",
            index=models.Index(
                condition=models.Q(("waits_for__isnull", False)), fields=["waits_for"], name="step_waiting"
            ),
        ),
        migrations.AddConstraint(
            model_name="evidence",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    (
                        "kind__in",
                        [
                            "response",
                            "inspection",
                            "verification",
                            "attestation",
                            "drift",
                            "late_receipt",
                            "flight_record",
                            "intent",
                        ],
                    )
                ),
                name="evidence_kind_known",
            ),
        ),
        migrations.AddConstraint(
            model_name="intent",
            constraint=models.UniqueConstraint(
                condition=models.Q(("name", ""), _negated=True),
                fields=("team", "tool", "name"),
                name="intent_name_once",
            ),
        ),
    ]
