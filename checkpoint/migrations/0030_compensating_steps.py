"""A step can undo the effect of another."""

import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("checkpoint", "0029_human_tasks"),
    ]

    operations = [
        migrations.AddField(
            model_name="step",
            name="compensates",
            field=models.ForeignKey(
                db_index=False,
                null=True,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="compensations",
                to="checkpoint.step",
            ),
        ),
        migrations.AddIndex(
            model_name="step",
            index=models.Index(
                condition=models.Q(("compensates__isnull", False)), fields=["compensates"], name="step_compensation"
            ),
        ),
        migrations.AddConstraint(
            model_name="step",
            constraint=models.UniqueConstraint(
                condition=models.Q(
                    ("compensates__isnull", False), models.Q(("status__in", ["abandoned", "superseded"]), _negated=True)
                ),
                fields=("compensates",),
                name="step_compensated_once",
            ),
        ),
    ]
