"""The arrows to and from the new states; what an edit put aside keeps no workflow from ending."""

from django.db import migrations

from checkpoint.laws import arrow_laws


def install(apps, schema_editor):
    schema_editor.execute("\n".join(arrow_laws.arrows_anew()), params=None)


class Migration(migrations.Migration):
    """Backwards the laws stay as they are: without the states they say what they said before."""

    dependencies = [("checkpoint", "0017_superseded_steps")]
    operations = [migrations.RunPython(install, migrations.RunPython.noop)]
