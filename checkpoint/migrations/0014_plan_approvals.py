"""One request may allow a whole plan: each of its steps has a row, and the rows belong together for good."""

import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("checkpoint", "0013_closed_cases")]

    operations = [
        migrations.AddField(
            model_name="approval",
            name="part_of",
            field=models.ForeignKey(
                null=True,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="parts",
                to="checkpoint.approval",
            ),
        ),
        migrations.AddField(
            model_name="approval",
            name="plan_hash",
            field=models.CharField(blank=True, default="", help_text="Of all shares; empty for a step.", max_length=64),
        ),
        migrations.AlterField(
            model_name="approval",
            name="arguments_hash",
            field=models.CharField(help_text="In a plan also of a template that is not resolved yet.", max_length=64),
        ),
        migrations.AddConstraint(
            model_name="approval",
            constraint=models.CheckConstraint(
                condition=models.Q(("part_of", None), models.Q(("plan_hash", ""), _negated=True), _connector="OR"),
                name="approval_part_has_plan",
            ),
        ),
    ]
