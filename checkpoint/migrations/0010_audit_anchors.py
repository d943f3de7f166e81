"""Signed statements of how far every audit chain had come."""

import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("checkpoint", "0009_approval_laws")]
    operations = [
        migrations.CreateModel(
            name="AuditAnchor",
            fields=[
                ("number", models.BigIntegerField(primary_key=True, serialize=False)),
                ("at", models.DateTimeField()),
                ("text", models.TextField()),
                ("hash", models.CharField(max_length=64)),
                (
                    "signature",
                    models.CharField(help_text="Ed25519 over the text, in hexadecimal digits.", max_length=128),
                ),
                (
                    "covers_until",
                    models.DateTimeField(
                        help_text="Every entry older than this is stated by now; null while the first ones are not through.",
                        null=True,
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="AnchoredHead",
            fields=[
                (
                    "pk",
                    models.CompositePrimaryKey(
                        "stream_id", "seq", blank=True, editable=False, primary_key=True, serialize=False
                    ),
                ),
                ("stream_id", models.UUIDField()),
                ("seq", models.BigIntegerField()),
                ("hash", models.CharField(max_length=64)),
                (
                    "anchor",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="heads",
                        to="checkpoint.auditanchor",
                    ),
                ),
            ],
        ),
    ]
