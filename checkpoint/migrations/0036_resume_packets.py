"""Resume packets are kept as they were issued."""

import django.db.models.deletion
from django.db import migrations, models

import checkpoint.models.identifiers


class Migration(migrations.Migration):
    dependencies = [
        ("checkpoint", "0035_waiver_laws"),
    ]

    operations = [
        migrations.CreateModel(
            name="ResumePacket",
            fields=[
                (
                    "id",
                    models.UUIDField(
                        default=checkpoint.models.identifiers.uuid7, editable=False, primary_key=True, serialize=False
                    ),
                ),
                ("workflow_version", models.PositiveIntegerField()),
                ("budget", models.PositiveIntegerField()),
                ("counted_in", models.CharField(help_text="Bytes, or the name of a tokenizer.", max_length=40)),
                ("text", models.TextField(help_text="Canonical JSON (RFC 8785) that the hash was taken over.")),
                ("sha256", models.CharField(max_length=64)),
                ("issued_to", models.CharField(help_text="Who asked for it first.", max_length=150)),
                ("issued_at", models.DateTimeField()),
                (
                    "workflow",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="packets",
                        to="checkpoint.workflow",
                    ),
                ),
            ],
            options={
                "constraints": [models.UniqueConstraint(fields=("workflow", "sha256"), name="resume_packet_once")],
            },
        ),
    ]
