"""A policy version keeps the text that its author wrote. Rows from before have none; nothing rewrites them."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("checkpoint", "0011_anchor_laws")]
    operations = [
        migrations.AddField(
            model_name="policyversion",
            name="text",
            field=models.TextField(blank=True, db_default="", default="", help_text="YAML, as its author wrote it."),
        ),
        migrations.AlterField(
            model_name="policyversion",
            name="rules",
            field=models.JSONField(
                help_text="The text as JSON values: {defaults, rules}; before texts were kept, the fields of decide.Policy."
            ),
        ),
    ]
