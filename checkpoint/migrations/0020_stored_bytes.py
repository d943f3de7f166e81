"""Bytes get rows of their own, under artifacts: where they are, and what in storage is to be taken away."""

from django.db import migrations, models

import checkpoint.clock
from checkpoint import laws

TABLE = "checkpoint_storedbytes"
LAWS = ("identity_is_fixed", "named_is_final", "named_stays")

# Until now a path followed from the hash.
_FILL = f"""
INSERT INTO {TABLE} (sha256, size, path, named, brought_at)
SELECT DISTINCT ON (sha256) sha256, size, substr(sha256, 1, 2) || '/' || substr(sha256, 3, 2) || '/' || sha256, true,
       created_at
FROM checkpoint_artifact ORDER BY sha256, created_at DESC
"""
_NAMES = f"""
ALTER TABLE checkpoint_artifact ADD CONSTRAINT artifact_has_bytes FOREIGN KEY (sha256) REFERENCES {TABLE} (sha256)
"""
_NAMES_NO_MORE = "ALTER TABLE checkpoint_artifact DROP CONSTRAINT artifact_has_bytes"


def install(apps, schema_editor):
    schema_editor.execute("\n".join(laws.stored_bytes()), params=None)


def uninstall(apps, schema_editor):
    for law in LAWS:
        schema_editor.execute(f"DROP TRIGGER law_{law} ON {TABLE}")


class Migration(migrations.Migration):
    """Backwards, bytes that were stored meanwhile are not found where their hash says; they are still in storage."""

    dependencies = [("checkpoint", "0019_prompts_in_force")]

    operations = [
        migrations.CreateModel(
            name="LoosePath",
            fields=[
                ("path", models.CharField(max_length=200, primary_key=True, serialize=False)),
                ("since", models.DateTimeField(db_default=checkpoint.clock.Now())),
                (
                    "doomed",
                    models.BooleanField(default=False, help_text="Being taken away; an upload to it no longer counts."),
                ),
            ],
            options={"indexes": [models.Index(fields=["since"], name="loose_path_since")]},
        ),
        migrations.CreateModel(
            name="StoredBytes",
            fields=[
                ("sha256", models.CharField(max_length=64, primary_key=True, serialize=False)),
                ("size", models.PositiveBigIntegerField(help_text="Bytes.")),
                ("path", models.CharField(max_length=200, unique=True)),
                (
                    "named",
                    models.BooleanField(default=False, help_text="Whether an artifact names them; never taken back."),
                ),
                ("brought_at", models.DateTimeField(help_text="When somebody last brought them.")),
            ],
            options={
                "indexes": [
                    models.Index(
                        condition=models.Q(("named", False)), fields=["brought_at"], name="stored_bytes_unnamed"
                    )
                ],
            },
        ),
        migrations.RunSQL(_FILL, migrations.RunSQL.noop),
        migrations.RunSQL(_NAMES, _NAMES_NO_MORE),
        migrations.RunPython(install, uninstall),
    ]
