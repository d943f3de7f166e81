"""A shop's database beside the test's own, on the same server, and `sql.execute` for it as the engine calls it."""

from __future__ import annotations

import secrets
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal
from urllib.parse import urlsplit

import psycopg
import pytest
from psycopg import sql

from checkpoint.config.embedded_postgres import Addresses
from checkpoint.config.environment import BASE_DIR
from checkpoint.planning.argument_schemas import closed, prepare_arguments
from workers.tools.secrets import Secrets
from workers.tools.sql_arguments import SqlArguments
from workers.tools.sql_databases import Database, Databases
from workers.tools.sql_execute import SqlExecute

SCHEMA = closed(SqlArguments.model_json_schema())
SECRET = "SHOP_DATABASE"
_TABLES = """
    CREATE TABLE stock (article text PRIMARY KEY, pieces integer NOT NULL CHECK (pieces >= 0), note jsonb, at date);
    CREATE TABLE orders (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, article text, total numeric(20, 2),
      CONSTRAINT known FOREIGN KEY (article) REFERENCES stock DEFERRABLE INITIALLY DEFERRED);
    INSERT INTO stock VALUES ('chair', 10), ('desk', 5);
"""


@dataclass(frozen=True)
class Shop:
    """The foreign database: as its owner sees it, and as the list of the operator names it."""

    owner_url: str
    entry: Database
    password: str

    def sql(self, statement: str, *values: Any) -> list[Any]:
        """Runs a statement as the owner."""
        with psycopg.connect(self.owner_url, autocommit=True) as connection:
            cursor = connection.execute(statement.encode(), values or None)
            return cursor.fetchall() if cursor.description else []

    def pieces(self, article: str = "chair") -> int:
        """How many there are."""
        return int(self.sql("SELECT pieces FROM stock WHERE article = %s", article)[0][0])

    def tool(self, **changed: Any) -> SqlExecute:
        """The tool with this database on its list."""
        environ = {f"CHECKPOINT_SECRET_{SECRET}": self.password}
        return SqlExecute(Databases([self.entry.model_copy(update=changed)]), Secrets(environ))

    def environment(self, folder: Path, **changed: Any) -> dict[str, str]:
        """What a worker process needs to have it on its list."""
        entry = self.entry.model_copy(update=changed)
        lines = [f"{name} = {value!r}" for name, value in entry.model_dump(exclude_none=True).items()]
        file = folder / "databases.toml"
        file.write_text("\n".join(["[[database]]", *lines]).replace("'", '"'))
        return {"CHECKPOINT_SQL_DATABASES": str(file), f"CHECKPOINT_SECRET_{SECRET}": self.password}


def arguments(statement: str = "", *parameters: Any, **more: Any) -> SqlArguments:
    """Arguments as the schema leaves them; by default a statement that takes a chair."""
    given = statement or "UPDATE stock SET pieces = pieces - 1 WHERE article = $1"
    document = {"database": "shop", "statement": given, "parameters": list(parameters if statement else ["chair"])}
    return SqlArguments.model_validate_json(prepare_arguments(SCHEMA, document | more), strict=True)


@contextmanager
def opened_shop(superuser_url: str) -> Iterator[Shop]:
    """One database and one role on the server."""
    parts, name = urlsplit(superuser_url), f"shop_{secrets.token_hex(4)}"
    password = secrets.token_hex(12)
    server = parts._replace(path="/postgres").geturl()
    owner_url = parts._replace(path=f"/{name}").geturl()
    _administer(server, f"CREATE DATABASE {name}", f"CREATE ROLE {name} LOGIN PASSWORD '{password}'")
    markers = (BASE_DIR / "deploy/effect_markers.sql").read_text().replace(':"role"', name)
    rights = f"GRANT SELECT, INSERT, UPDATE, DELETE ON stock, orders TO {name}"
    _administer(owner_url, _TABLES, markers, markers, rights)
    where = f"{name}@{parts.hostname}:{parts.port}/{name}"
    entry = Database(name="shop", url=f"postgresql://{where}", password=SECRET, deadline_seconds=10.0)
    yield Shop(owner_url, entry, password)
    _administer(server, f"DROP DATABASE {name} WITH (FORCE)", f"DROP ROLE {name}")


@pytest.fixture(scope="session")
def shop_database(database_addresses: Addresses) -> Iterator[Shop]:
    """One for the session."""
    with opened_shop(database_addresses.superuser) as opened:
        yield opened


@pytest.fixture
def shop(shop_database: Shop) -> Shop:
    """The shop as it opens in the morning."""
    shop_database.sql("TRUNCATE checkpoint.effects, orders, stock")
    shop_database.sql("INSERT INTO stock VALUES ('chair', 10), ('desk', 5)")
    return shop_database


class Wire:
    """Stands between tool and server, and cuts the connection around the COMMIT."""

    def __init__(self, port: int) -> None:
        self._server = socket.create_server(("127.0.0.1", 0))
        self._port = port
        self.port = int(self._server.getsockname()[1])
        self.cut: Literal["", "before", "after"] = ""
        self._thread = threading.Thread(target=self._accept, daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Accepts nobody any more."""
        self._server.shutdown(socket.SHUT_RDWR)
        self._server.close()
        self._thread.join()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._server.accept()
                server = socket.create_connection(("127.0.0.1", self._port))
                threading.Thread(target=self._answers, args=[server, client], daemon=True).start()
                threading.Thread(target=self._requests, args=[client, server], daemon=True).start()

    def _requests(self, client: socket.socket, server: socket.socket) -> None:
        with client, server, suppress(OSError):
            while data := client.recv(65536):
                if b"COMMIT\0" in data and self.cut:
                    self._cut(client, server, data)
                    return
                server.sendall(data)

    def _cut(self, client: socket.socket, server: socket.socket, data: bytes) -> None:
        """`before`: the COMMIT never arrives. `after`: it does, and its answer never comes back."""
        after, self.cut = self.cut == "after", ""
        client.shutdown(socket.SHUT_RDWR)
        if after:
            server.sendall(data)
        server.shutdown(socket.SHUT_WR)

    def _answers(self, server: socket.socket, client: socket.socket) -> None:
        with suppress(OSError):
            while data := server.recv(65536):
                client.sendall(data)


def _administer(url: str, *statements: str) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        for statement in statements:
            connection.execute(sql.SQL(statement))
