"""The first policy version, and a team for installations that have but one. Both may be followed by others."""

from django.db import migrations

from checkpoint.models.identifiers import uuid7

# The hash of the canonical rules, as canonical.py takes it; a test says so.
SHA256 = "65836b1a0c05b23902391ce7ce76739c887c7b4f92118265d8fdd66142389876"
RULES = {
    "max_attempts": 3,
    "retry_base": 1.0,
    "retry_cap": 60.0,
    "max_inspections": 5,
    "inspection_base": 0.5,
    "inspection_cap": 30.0,
    "verification_base": 0.5,
    "verification_cap": 15.0,
    "verification_deadline": 60.0,
}


def create(apps, schema_editor):
    apps.get_model("checkpoint", "PolicyVersion").objects.get_or_create(
        number=1,
        defaults={
            "id": uuid7(),
            "sha256": SHA256,
            "rules": RULES,
            "reason": "The rules that Checkpoint comes with.",
            "author": "Checkpoint",
        },
    )
    apps.get_model("checkpoint", "Team").objects.get_or_create(
        slug="default", defaults={"id": uuid7(), "name": "Default"}
    )


class Migration(migrations.Migration):
    dependencies = [("checkpoint", "0004_rights")]
    operations = [migrations.RunPython(create, migrations.RunPython.noop)]
