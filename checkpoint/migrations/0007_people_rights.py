"""Administrators keep accounts, groups and teams."""

from django.db import migrations

from checkpoint.migrations._grants import give

NAMES = {"administer_people": "Can administer accounts, groups and teams"}
GRANTS = {"Admin": ("administer_people",)}


class Migration(migrations.Migration):
    dependencies = [("checkpoint", "0006_audit_search")]
    operations = [
        migrations.AlterModelOptions(name="team", options={"permissions": list(NAMES.items())}),
        migrations.RunPython(give("checkpoint", "team", NAMES, GRANTS), migrations.RunPython.noop),
    ]
