"""Requests of a token are counted for all web processes together, in a table that waits for no disk."""

import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("checkpoint", "0038_policy_scope"),
    ]

    operations = [
        migrations.CreateModel(
            name="RequestRate",
            fields=[
                (
                    "token",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        primary_key=True,
                        related_name="+",
                        serialize=False,
                        to="checkpoint.apitoken",
                    ),
                ),
                ("used_up_to", models.DateTimeField()),
            ],
        ),
        migrations.RunSQL("ALTER TABLE checkpoint_requestrate SET UNLOGGED", migrations.RunSQL.noop),
    ]
