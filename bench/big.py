"""`make big`: the server time of every page over a large installation, with the plan of its slowest statement.

A server of its own is filled by SQL with BIG_WORKFLOWS workflows (a million) and ten audit entries for each, of
which one in a thousand waits for a person. Then every page is asked for many times, by somebody of one of ten teams
and by an auditor who sees all. The rows obey the tables' constraints; the laws are off while they are written, and
their hash chains are not real.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time

import psycopg

from bench.__main__ import database
from checkpoint.config.environment import BASE_DIR
from checkpoint.contracts import Contract, RecoveryClass, Reversibility

WORKFLOWS = int(os.environ.get("BIG_WORKFLOWS", "1000000"))
AT_ONCE = 50_000
TEAMS = 10
_CONTRACT = Contract(RecoveryClass.OPAQUE, Reversibility.IRREVERSIBLE)

# What a new row of a type holds where nothing below says otherwise.
_NOTHING = {"integer": "0", "bigint": "0", "boolean": "false", "jsonb": "'{}'", "text": "''", "character varying": "''"}

_BASE = """
CREATE UNLOGGED TABLE big AS
SELECT n, uuidv7(make_interval(secs => n - %(workflows)s)) AS workflow,
  uuidv7(make_interval(secs => n - %(workflows)s)) AS step,
  uuidv7(make_interval(secs => n - %(workflows)s)) AS receipt,
  now() + make_interval(secs => n - %(workflows)s) AS at,
  (SELECT array_agg(id ORDER BY slug) FROM checkpoint_team WHERE slug LIKE 'big-%%')[n %% %(teams)s + 1] AS team,
  n %% 1000 = 0 AS asked
FROM generate_series(1, %(workflows)s) AS n
"""
_ROWS = {
    "checkpoint_workflow": {
        "id": "workflow",
        "team_id": "team",
        "kind": "(ARRAY['refund', 'invoicing', 'publishing'])[n % 3 + 1]",
        "goal": "'Refund order ' || n || ' to the customer, who sent photographs, and tell her about it.'",
        "constraints": "'[]'",
        "input": "'{}'",
        "policy_version_id": "(SELECT id FROM checkpoint_policyversion ORDER BY number LIMIT 1)",
        "status": "CASE WHEN asked THEN 'needs_review' ELSE 'completed' END",
        "sealed": "true",
        "created_at": "at",
        "updated_at": "at",
        "ended_at": "CASE WHEN NOT asked THEN at END",
    },
    "checkpoint_step": {
        "id": "step",
        "workflow_id": "workflow",
        "position": "1",
        "name": "'pay_refund'",
        "tool_version_id": "(SELECT id FROM checkpoint_toolversion WHERE name = 'bench.noop' LIMIT 1)",
        "template": "'{}'",
        "variant": "'only'",
        "arguments": "'{}'",
        "idempotency_key": "lpad(n::text, 64, '0')",
        "status": "CASE WHEN asked THEN 'uncertain' ELSE 'verified' END",
        "standing": "CASE WHEN asked THEN '' ELSE 'verified' END",
        "fence": "1",
        "attempt_count": "1",
        "receipt_id": "CASE WHEN NOT asked THEN receipt END",
        "committed_at": "CASE WHEN NOT asked THEN at END",
        "verified_at": "CASE WHEN NOT asked THEN at END",
    },
    "checkpoint_attempt": {
        "id": "uuidv7(at - now())",
        "step_id": "step",
        "number": "1",
        "worker_id": "'00000000-0000-8000-8000-00000000000a'",
        "started_at": "at",
        "deadline_at": "at",
        "ended_at": "at",
        "ending": "CASE WHEN asked THEN 'lost' ELSE 'receipt' END",
    },
    "checkpoint_evidence": {
        "id": "receipt",
        "step_id": "step",
        "kind": "'response'",
        "finding": "'receipt'",
        "source": "'bench.noop'",
        "standing": "'committed'",
        "facts": "'{}'",
        "observed_at": "at",
    },
    "checkpoint_auditstream": {"id": "workflow", "name": "'workflow/' || workflow", "last_seq": "10"},
}
_CASES = {
    "id": "uuidv7(at - now())",
    "workflow_id": "workflow",
    "step_id": "step",
    "reason": "'outcome_unknown'",
    "sentence": "'“pay_refund” was started, and whether it took effect is not known.'",
    "findings": """'{"known": [], "unknown": [], "tried": []}'""",
    "status": "CASE WHEN asked THEN 'open' ELSE 'settled' END",
    "opened_at": "at",
    "closed_at": "CASE WHEN NOT asked THEN at END",
}
_ENTRIES = {
    "stream_id": "workflow",
    "seq": "seq",
    "at": "at + make_interval(secs => seq * 0.05)",
    "actor": "'workers'",
    "channel": "'engine'",
    "verb": "(ARRAY['submit', 'prepare', 'start', 'commit', 'verify'])[seq % 5 + 1]",
    "text": """format('{"actor":"workers","after":"verified","at":"%s","channel":"engine","seq":%s,"stream":"%s",'
      '"subject":"step pay_refund","verb":"verify"}', to_char(at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"+00:00"'),
      seq, workflow)""",
    "hash": "md5(n::text) || md5(seq::text)",
}


def fill(url: str, workflows: int) -> None:
    """Writes everything, as a superuser."""
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("SET session_replication_role = replica")
        connection.execute("SET synchronous_commit = off")
        connection.execute(
            "INSERT INTO checkpoint_team (id, slug, name)"
            f" SELECT uuidv7(), 'big-' || n, 'Team ' || n FROM generate_series(1, {TEAMS}) AS n"
        )
        connection.execute(
            "INSERT INTO checkpoint_toolversion (id, name, version, summary, schema, variants, sha256)"
            " VALUES (uuidv7(), 'bench.noop', '1', 'Does nothing', '{}', %s, '')",
            [json.dumps([{"name": "only", "when": {}, "contract": _CONTRACT.to_json()}])],
        )
        connection.execute(_BASE % {"workflows": workflows, "teams": TEAMS})
        connection.execute("CREATE INDEX ON big (n)")
        insert(connection, "checkpoint_workerprocess", _WORKER, "(VALUES (1)) AS one", "true")
        for begins in range(1, workflows + 1, AT_ONCE):
            part = f"n BETWEEN {begins} AND {begins + AT_ONCE - 1}"
            for table, columns in _ROWS.items():
                insert(connection, table, columns, "big", part)
            insert(connection, "checkpoint_case", _CASES, "big", f"{part} AND (asked OR n % 100 = 1)")
            insert(connection, "checkpoint_auditentry", _ENTRIES, "big, generate_series(1, 10) AS seq", part)
        connection.execute("VACUUM ANALYZE")


_WORKER = {"id": "'00000000-0000-8000-8000-00000000000a'", "lock_key": "1", "host": "'big'", "tools": "'{}'"}


def insert(connection: psycopg.Connection, table: str, columns: dict[str, str], source: str, part: str) -> None:
    """Inserts rows made from a source; a column that nothing is said of and that needs a value holds nothing."""
    known = connection.execute(
        "SELECT column_name, data_type FROM information_schema.columns"
        " WHERE table_name = %s AND is_nullable = 'NO' AND column_default IS NULL",
        [table],
    ).fetchall()
    values = {name: _NOTHING[kind] for name, kind in known if name not in columns} | columns
    names, expressions = ", ".join(values), ", ".join(values.values())
    connection.execute(f"INSERT INTO {table} ({names}) SELECT {expressions} FROM {source} WHERE {part}")


def main() -> None:
    """Fills a server, and runs the measuring process on it."""
    with database() as (addresses, env):
        begun = time.monotonic()
        fill(addresses.superuser, WORKFLOWS)
        print(f"{WORKFLOWS:,} workflows and {WORKFLOWS * 10:,} audit entries in {time.monotonic() - begun:.0f} s")
        subprocess.run([sys.executable, "-m", "bench.pages"], cwd=BASE_DIR, env=env, check=True)


if __name__ == "__main__":
    main()
