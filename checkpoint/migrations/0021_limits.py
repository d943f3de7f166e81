"""Limits in flight: the rows that workers lock, who waits at one, and the started steps of a tool, to be counted."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("checkpoint", "0020_stored_bytes")]

    operations = [
        migrations.CreateModel(
            name="Limit",
            fields=[
                ("tool", models.CharField(max_length=100, primary_key=True, serialize=False)),
                ("place_at", models.DateTimeField(null=True)),
            ],
        ),
        migrations.AddField(model_name="workflow", name="held_by", field=models.CharField(max_length=100, null=True)),
    ]
