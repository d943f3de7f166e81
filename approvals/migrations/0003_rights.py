"""Who decides: operators and approvers. Administrators and auditors look on, so that no one grades their own work."""

from django.db import migrations

from checkpoint.migrations._grants import give

NAMES = {"decide_case": "Can decide cases"}
GRANTS = {"Operator": ("decide_case",), "Approver": ("decide_case",)}


class Migration(migrations.Migration):
    dependencies = [
        ("approvals", "0002_laws"),
        ("checkpoint", "0004_rights"),
    ]
    operations = [migrations.RunPython(give("approvals", "decision", NAMES, GRANTS), migrations.RunPython.noop)]
