"""Under which prompt and which newest tool an approval was given is written once."""

from django.db import migrations

from checkpoint.laws import changed, law

APPROVAL = "checkpoint_approval"


def install(apps, schema_editor):
    fixed = law(APPROVAL, "given_under_is_fixed", "UPDATE", changed("prompt_version", "newest_tool_id"))
    schema_editor.execute(fixed, params=None)


def uninstall(apps, schema_editor):
    schema_editor.execute(f"DROP TRIGGER law_given_under_is_fixed ON {APPROVAL}")


class Migration(migrations.Migration):
    dependencies = [("checkpoint", "0025_completed_has_verified_steps")]
    operations = [
        # For a time 0019 made it.
        migrations.RunSQL(f"DROP TRIGGER IF EXISTS law_given_under_is_fixed ON {APPROVAL}", migrations.RunSQL.noop),
        migrations.RunPython(install, uninstall),
    ]
