"""The operator's list of foreign PostgreSQL databases: where each is, as whom, and within which limits."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Annotated, Any, Literal

from pydantic import Field

from checkpoint.contracts import Contract, RecoveryClass, Reversibility, Variant
from workers.tools import operator_lists
from workers.tools.http_arguments import Model, SecretName

SETTING = "CHECKPOINT_SQL_DATABASES"
DEFAULT_FILE = "deploy/databases.toml"

# One host, a role, no password: that is a secret of its own, so that it can be kept out of every message.
_URL = (
    r"^postgres(?:ql)?://[A-Za-z0-9._~%-]+@(?:[A-Za-z0-9.-]+|\[[0-9a-fA-F:]+\])(?::[0-9]{1,5})?/[^\s/?#@:]+(?:\?\S*)?$"
)


class Database(Model):
    """One entry of the file. All times are seconds.

    Attributes:
        url: `postgresql://role@host:port/name?sslmode=…`, without a password.
        password: name of the secret with the role's password; None where the server asks for none.
        largest_row_count: a statement that changes or returns more rows is rolled back.
        deadline_seconds, settle_seconds, reversibility, where_to_look, link: see `checkpoint.contracts.Contract`.
    """

    name: Annotated[str, Field(pattern=r"^[a-z][a-z0-9-]{0,31}$")]
    url: Annotated[str, Field(pattern=_URL)]
    password: SecretName | None = None
    largest_row_count: Annotated[int, Field(ge=0, le=1_000_000)] = 1000
    deadline_seconds: Annotated[float, Field(ge=1, le=3600)] = 20.0
    settle_seconds: Annotated[float, Field(ge=0)] = 2.0
    reversibility: Literal["compensable", "irreversible"] = "irreversible"
    where_to_look: str = ""
    link: Annotated[str, Field(pattern=r"^(?:https?://[!-~]*)?$")] = ""

    def variants(self) -> Iterable[Variant]:
        """One contract: the marker makes the key honoured for ever, and every lookup exact."""
        table = f"Ask the database {self.name}: SELECT * FROM checkpoint.effects WHERE key = the step's key."
        contract = Contract(
            RecoveryClass.IDEMPOTENT,
            Reversibility(self.reversibility),
            deadline=self.deadline_seconds,
            settle=self.settle_seconds,
            concurrent_same_key_safe=True,
            can_inspect=True,
            can_verify=True,
            where_to_look=self.where_to_look or f"{table} done_at says when it was committed; without it, it was not.",
            link=self.link,
            facts=("database", "rows", "at"),
        )
        when: dict[str, Any] = {"properties": {"database": {"const": self.name}}, "required": ["database"]}
        yield Variant(f"{self.name}: keyed, lookup, verify", contract, when)


# A database that is on no list is refused before anything is sent.
UNLISTED = Variant(
    name="unlisted",
    contract=Contract(
        RecoveryClass.OPAQUE,
        Reversibility.IRREVERSIBLE,
        where_to_look=f"Nowhere: this database is not on the list ({SETTING}), so nothing is ever sent to it.",
    ),
)


class Databases:
    """The databases by name."""

    def __init__(self, databases: Iterable[Database]) -> None:
        self._by_name = {database.name: database for database in databases}

    def get(self, name: str) -> Database | None:
        """The database of that name, if it is on the list."""
        return self._by_name.get(name)

    def variants(self) -> Sequence[Variant]:
        """The contracts of all of them; the first that matches counts."""
        return [*(variant for database in self._by_name.values() for variant in database.variants()), UNLISTED]


@lru_cache(maxsize=1)
def load() -> Databases:
    """The list of the file that CHECKPOINT_SQL_DATABASES names, once per process.

    Raises:
        operator_lists.ListInvalid: the file cannot be used.
    """
    return Databases(operator_lists.read(Database, table="database", setting=SETTING, default=DEFAULT_FILE))
