"""Auditors and administrators search the audit; what they search by has an index."""

from django.db import migrations, models

from checkpoint.migrations._grants import give

NAMES = {"view_audit": "Can search and export every audit stream"}
GRANTS = {"Auditor": ("view_audit",), "Admin": ("view_audit",)}
NOT_BY_ENGINE = ~models.Q(channel="engine")


class Migration(migrations.Migration):
    dependencies = [("checkpoint", "0005_default_policy")]
    operations = [
        migrations.AlterModelOptions(
            name="auditentry",
            options={
                "ordering": ["stream_id", "seq"],
                "permissions": list(NAMES.items()),
                "verbose_name_plural": "audit entries",
            },
        ),
        migrations.AddIndex("auditentry", models.Index(fields=["at"], name="audit_newest")),
        migrations.AddIndex("auditentry", models.Index(fields=["verb", "at"], name="audit_newest_of_verb")),
        migrations.AddIndex(
            "auditentry", models.Index(fields=["at"], name="audit_newest_of_people", condition=NOT_BY_ENGINE)
        ),
        migrations.AddIndex(
            "auditentry",
            models.Index(fields=["actor", "at"], name="audit_newest_of_actor", condition=~models.Q(actor="engine")),
        ),
        migrations.RunPython(give("checkpoint", "auditentry", NAMES, GRANTS), migrations.RunPython.noop),
    ]
