"""Notices and timers are also about requests for approval: the id that they left room for becomes a foreign key."""

import django.db.models.deletion
from django.db import migrations, models
from django.db.models.functions import Coalesce

CONSTRAINTS = (
    ("notice", "notice_written_once"),
    ("notice", "notice_about_one_thing"),
    ("noticetimer", "notice_timer_set_once"),
    ("noticetimer", "notice_timer_about_one_thing"),
)


def key(name):
    return models.ForeignKey(
        null=True, on_delete=django.db.models.deletion.PROTECT, related_name=name, to="checkpoint.approval"
    )


class Migration(migrations.Migration):
    dependencies = [("approvals", "0014_case_work_laws"), ("checkpoint", "0008_approvals")]
    operations = [
        *(migrations.RemoveConstraint(model_name=model, name=name) for model, name in CONSTRAINTS),
        migrations.RenameField(model_name="notice", old_name="approval_id", new_name="approval"),
        migrations.RenameField(model_name="noticetimer", old_name="approval_id", new_name="approval"),
        migrations.AlterField(model_name="notice", name="approval", field=key("notices")),
        migrations.AlterField(model_name="noticetimer", name="approval", field=key("notice_timers")),
        migrations.AddConstraint(
            model_name="notice",
            constraint=models.UniqueConstraint(
                Coalesce("case", "approval", "workflow"), "kind", "recipient", name="notice_written_once"
            ),
        ),
        migrations.AddConstraint(
            model_name="notice",
            constraint=models.CheckConstraint(
                condition=models.Q(case=None) | models.Q(approval=None), name="notice_about_one_thing"
            ),
        ),
        migrations.AddConstraint(
            model_name="noticetimer",
            constraint=models.UniqueConstraint(Coalesce("case", "approval"), "kind", name="notice_timer_set_once"),
        ),
        migrations.AddConstraint(
            model_name="noticetimer",
            constraint=models.CheckConstraint(
                condition=models.Q(case=None, approval__isnull=False) | models.Q(case__isnull=False, approval=None),
                name="notice_timer_about_one_thing",
            ),
        ),
    ]
