"""The rights on workflows, and the groups that hold them. A group an administrator changed keeps what was added."""

from django.db import migrations

from checkpoint.migrations._grants import give

NAMES = {
    "view_all_workflows": "Can view the workflows of every team",
    "submit_workflow": "Can submit workflows for one's teams",
    "administer_workflow": "Can wind down workflows that one sees",
}
GRANTS = {
    "Operator": ("submit_workflow", "administer_workflow"),
    "Approver": (),
    "Auditor": ("view_all_workflows",),
    "Admin": ("view_all_workflows", "administer_workflow"),
    "Agent": ("submit_workflow",),
}


class Migration(migrations.Migration):
    dependencies = [
        ("checkpoint", "0003_laws"),
        ("auth", "0012_alter_user_first_name_max_length"),
        ("contenttypes", "0002_remove_content_type_name"),
    ]
    operations = [
        migrations.AlterModelOptions(name="workflow", options={"permissions": list(NAMES.items())}),
        migrations.RunPython(give("checkpoint", "workflow", NAMES, GRANTS), migrations.RunPython.noop),
    ]
