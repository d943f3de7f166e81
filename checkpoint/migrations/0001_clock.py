"""`checkpoint_now()`, which every default and every statement reads time through."""

from django.db import migrations


class Migration(migrations.Migration):
    initial = True
    dependencies = []
    operations = [
        migrations.RunSQL(
            "CREATE FUNCTION checkpoint_now() RETURNS timestamptz LANGUAGE sql VOLATILE PARALLEL SAFE"
            " AS 'SELECT clock_timestamp()'",
            "DROP FUNCTION checkpoint_now()",
        )
    ]
