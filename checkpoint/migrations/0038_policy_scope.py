"""A token may be one that puts policies in force."""

import django.contrib.postgres.fields
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("checkpoint", "0037_resume_packet_laws"),
    ]

    operations = [
        migrations.AlterField(
            model_name="apitoken",
            name="scopes",
            field=django.contrib.postgres.fields.ArrayField(
                base_field=models.CharField(
                    choices=[
                        ("read", "Read workflows, questions, tools and policies"),
                        ("submit", "Submit workflows, change and end them"),
                        ("decide", "Answer cases and requests for approval"),
                        ("audit", "Search the audit trail"),
                        ("policy", "Put policies in force"),
                    ],
                    max_length=10,
                )
            ),
        ),
    ]
