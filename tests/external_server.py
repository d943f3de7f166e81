"""A database on somebody else's server, for runs with CHECKPOINT_TEST_SERVER_URL."""

from __future__ import annotations

import os
import secrets
from urllib.parse import urlsplit

import psycopg
from psycopg import sql

from checkpoint.config.embedded_postgres import APP, OWNER, ROLES_SQL, Addresses


def prepare(superuser_url: str) -> Addresses:
    """A fresh database named after this pytest process, with the two roles; their passwords change with each run."""
    name = f"checkpoint_test_{os.environ.get('PYTEST_XDIST_WORKER', 'main')}"
    password = os.environ.setdefault("CHECKPOINT_TEST_PASSWORD", secrets.token_hex(16))
    with psycopg.connect(superuser_url, autocommit=True) as connection:
        connection.execute(sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(sql.Identifier(name)))
        connection.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
    parts = urlsplit(superuser_url)
    superuser = parts._replace(path=f"/{name}").geturl()
    with psycopg.connect(superuser, autocommit=True) as connection:
        connection.execute(ROLES_SQL.read_bytes())
        for role in (OWNER, APP):
            connection.execute(sql.SQL("ALTER ROLE {} PASSWORD {}").format(sql.Identifier(role), sql.Literal(password)))
    where = f"{parts.hostname}:{parts.port or 5432}"
    owner, app = (parts._replace(netloc=f"{r}:{password}@{where}", path=f"/{name}").geturl() for r in (OWNER, APP))
    return Addresses(superuser, owner, app)
