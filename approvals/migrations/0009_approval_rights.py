"""Approvers allow risky work before it runs; whoever operates does not allow it to themselves."""

from django.db import migrations

from checkpoint.migrations._grants import give

NAMES = {"decide_approval": "Can decide on approvals"}
GRANTS = {"Approver": ("decide_approval",)}


class Migration(migrations.Migration):
    dependencies = [("approvals", "0008_signature_laws")]
    operations = [migrations.RunPython(give("approvals", "decision", NAMES, GRANTS), migrations.RunPython.noop)]
