"""What a bulk job knows of its person's authentication: policies with `step_up` ask for it. Fixed once it has started."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("approvals", "0017_request_changes")]

    operations = [
        migrations.AddField(
            model_name="bulkjob",
            name="authenticated_at",
            field=models.DateTimeField(help_text="When whoever started it had last authenticated.", null=True),
        ),
    ]
