"""Administrators look after notices, and hear of questions that nobody answers."""

from django.db import migrations

from checkpoint.migrations._grants import give

NAMES = {
    "administer_notices": "Can see every notice, send it again and set up channels",
    "receive_escalations": "Is told when a question stays unanswered for too long",
}
GRANTS = {"Admin": ("administer_notices", "receive_escalations")}


class Migration(migrations.Migration):
    dependencies = [
        ("approvals", "0005_notice_laws"),
        ("checkpoint", "0004_rights"),
    ]
    operations = [migrations.RunPython(give("approvals", "notice", NAMES, GRANTS), migrations.RunPython.noop)]
