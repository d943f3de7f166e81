"""The prompt with which an agent resumed, and the prompt and newest tool that an approval was given under."""

import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("checkpoint", "0018_superseded_laws")]

    operations = [
        migrations.AddField(
            model_name="approval",
            name="newest_tool",
            field=models.ForeignKey(
                db_index=False,
                help_text="As above.",
                null=True,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="+",
                to="checkpoint.toolversion",
            ),
        ),
        migrations.AddField(
            model_name="approval",
            name="prompt_version",
            field=models.CharField(help_text="Null in those from before it was kept.", max_length=100, null=True),
        ),
        migrations.AddField(
            model_name="workflow",
            name="resumed_prompt",
            field=models.CharField(help_text="With which its agent resumed last.", max_length=100, null=True),
        ),
        migrations.AlterField(
            model_name="workflow",
            name="prompt_version",
            field=models.CharField(help_text="With which it was planned, or accepted since.", max_length=100),
        ),
    ]
