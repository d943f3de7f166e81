"""Installs pgmq's schema, the queue for doorbells when no other broker is set.

Not as an extension: its SQL comes with the `pgmq` package and needs no rights beyond the owner's. A schema that is
there already, from an extension that somebody else administers, is left as it is.
"""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.db import migrations
from pgmq.install import get_embedded_install_sql

# The application may send and read, and have a queue made; it neither owns the tables nor may drop one.
# Queues are unlogged: a lost doorbell is rung again by the sweeper, and no doorbell waits for a disk.
# `create` looks first, because CREATE INDEX IF NOT EXISTS would wait for every reader's poll to end.
RIGHTS = """
CREATE OR REPLACE FUNCTION pgmq.create(queue_name text) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pgmq, pg_catalog, pg_temp AS $$
BEGIN
  IF NOT EXISTS (SELECT FROM pgmq.meta m WHERE m.queue_name = "create".queue_name) THEN
    PERFORM pgmq.create_unlogged("create".queue_name);
  END IF;
END
$$;
GRANT USAGE ON SCHEMA pgmq TO {role};
GRANT SELECT ON pgmq.meta, pgmq.topic_bindings TO {role};
ALTER DEFAULT PRIVILEGES IN SCHEMA pgmq GRANT SELECT, INSERT, UPDATE, DELETE ON TABLES TO {role};
ALTER DEFAULT PRIVILEGES IN SCHEMA pgmq GRANT USAGE, SELECT ON SEQUENCES TO {role};
"""


def install(apps: Any, schema_editor: Any) -> None:
    """pgmq's script cannot run twice, so it runs only where its schema is missing."""
    with schema_editor.connection.cursor() as cursor:
        cursor.execute("SELECT to_regclass('pgmq.meta') IS NULL")
        if cursor.fetchone()[0]:
            cursor.execute(get_embedded_install_sql())
            cursor.execute(RIGHTS.format(role=schema_editor.quote_name(settings.CHECKPOINT_APP_ROLE)))


def remove(apps: Any, schema_editor: Any) -> None:
    """Doorbells that were waiting are lost, which the sweeper makes good."""
    with schema_editor.connection.cursor() as cursor:
        cursor.execute("SELECT EXISTS (SELECT FROM pg_extension WHERE extname = 'pgmq')")
        if not cursor.fetchone()[0]:
            cursor.execute("DROP SCHEMA IF EXISTS pgmq CASCADE")


class Migration(migrations.Migration):
    initial = True
    dependencies: list[tuple[str, str]] = []
    operations = [migrations.RunPython(install, remove)]
