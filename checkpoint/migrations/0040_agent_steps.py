"""Steps that agents carry out themselves, with tools that are registered for one team."""

import django.db.models.deletion
from django.db import migrations, models

from checkpoint.migrations._grants import give

NAMES = {"register_tool": "Can register tools that the agents of one's teams carry out themselves"}
GRANTS = {"Operator": ("register_tool",), "Admin": ("register_tool",)}


class Migration(migrations.Migration):
    dependencies = [("checkpoint", "0039_request_rates")]

    operations = [
        migrations.AddField(
            model_name="step",
            name="by_agent",
            field=models.BooleanField(default=False, help_text="Its agent makes the call; no worker does."),
        ),
        migrations.AddField(
            model_name="toolversion",
            name="team",
            field=models.ForeignKey(
                db_index=False,
                help_text="Null: everybody's.",
                null=True,
                on_delete=django.db.models.deletion.PROTECT,
                to="checkpoint.team",
            ),
        ),
        migrations.AlterModelOptions(name="toolversion", options={"permissions": list(NAMES.items())}),
        migrations.RunPython(give("checkpoint", "toolversion", NAMES, GRANTS), migrations.RunPython.noop),
    ]
