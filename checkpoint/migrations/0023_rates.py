"""Rates of a tool, kept over all workers."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("checkpoint", "0022_limit_indexes")]

    operations = [migrations.AddField(model_name="limit", name="paced_to", field=models.DateTimeField(null=True))]
