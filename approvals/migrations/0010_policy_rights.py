"""Administrators put policies in force; everybody may read them."""

from django.db import migrations

from checkpoint.migrations._grants import give

NAMES = {"administer_policy": "Can put policies in force"}
GRANTS = {"Admin": ("administer_policy",)}


class Migration(migrations.Migration):
    dependencies = [("approvals", "0009_approval_rights"), ("checkpoint", "0012_policy_text")]
    operations = [
        migrations.CreateModel(
            name="Policy",
            fields=[],
            options={
                "permissions": list(NAMES.items()),
                "proxy": True,
                "default_permissions": (),
                "indexes": [],
                "constraints": [],
            },
            bases=("checkpoint.policyversion",),
        ),
        migrations.RunPython(give("approvals", "policy", NAMES, GRANTS), migrations.RunPython.noop),
    ]
