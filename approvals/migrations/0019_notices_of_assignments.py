"""Two more kinds of notices: a case was assigned to somebody, and a further person's answer is wanted."""

from django.db import migrations, models

KINDS = ["asked", "reminder", "escalation", "assigned", "second_person", "decided", "outcome"]
_KNOWN = (
    ("notice", "notice_kind_known", models.Q(kind__in=KINDS)),
    ("noticechannel", "notice_channel_kinds_known", models.Q(kinds__contained_by=KINDS)),
    ("noticesettings", "notice_settings_muted_known", models.Q(muted__contained_by=KINDS)),
)


class Migration(migrations.Migration):
    dependencies = [("approvals", "0018_bulk_authentication")]

    operations = [
        *(migrations.RemoveConstraint(model_name=model, name=name) for model, name, _ in _KNOWN),
        *(
            migrations.AddConstraint(model_name=model, constraint=models.CheckConstraint(condition=known, name=name))
            for model, name, known in _KNOWN
        ),
    ]
