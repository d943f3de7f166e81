"""Publishing tools: what they promise becomes rows, so that web, commands and journal need no tool's code."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.db.models import Q, QuerySet

from checkpoint import audit, clock
from checkpoint.canonical import canonical, sha256_hex
from checkpoint.contracts import Variant
from checkpoint.models import AuditStream, Team, ToolVersion
from checkpoint.people import Actor
from checkpoint.planning.argument_schemas import check_schema
from checkpoint.planning.plan_steps import PublishedTool
from checkpoint.transactions import one_transaction, require_transaction

SYSTEM_STREAM = (audit.SYSTEM_STREAM, "system")


@dataclass(frozen=True)
class Declaration:
    """What a tool says of itself. `schema` is the JSON Schema of its arguments, with defaults."""

    name: str
    version: str
    summary: str
    schema: dict[str, Any]
    variants: tuple[Variant, ...]

    def content(self) -> dict[str, Any]:
        """As JSON values; a tool version's hash is taken over these."""
        variants = [
            {"name": variant.name, "when": variant.when, "contract": variant.contract.to_json()}
            for variant in self.variants
        ]
        return {
            "name": self.name,
            "version": self.version,
            "summary": self.summary,
            "schema": self.schema,
            "variants": variants,
        }


@one_transaction
def publish_tools(declarations: Iterable[Declaration], *, actor: Actor) -> list[ToolVersion]:
    """Puts the declarations in force: each that differs from the newest version of its tool is stored, and returned.

    A contract that comes back (an older release is rolled back to, a setting is undone) is a new row once more: the
    newest row is always what the workers that started last promise.

    Raises:
        ValueError: a declaration's schema or variants cannot be used; the message names the tool. Nothing is stored.
    """
    return store(declarations, actor=actor, team=None)


def store(declarations: Iterable[Declaration], *, actor: Actor, team: Team | None) -> list[ToolVersion]:
    """As `publish_tools`, inside the transaction of a verb that has asked about rights; for one team or for all."""
    require_transaction()
    contents = [_checked(declaration) for declaration in declarations]
    audit.open_streams([SYSTEM_STREAM])
    AuditStream.objects.select_for_update().get(pk=audit.SYSTEM_STREAM)  # one publisher at a time
    in_force = {row.name: row.sha256 for row in newest_versions()}
    new = [
        ToolVersion.objects.create(sha256=sha256, team=team, **content)
        for content in contents
        if in_force.get(content["name"]) != (sha256 := sha256_hex(canonical(content)))
    ]
    audit.append([_entry(tool_version, actor) for tool_version in new], at=clock.now())
    return new


def newest_tools(*teams: Team) -> dict[str, PublishedTool]:
    """The newest version of every tool that everybody or one of the teams has, by name: what a plan is held against."""
    found = newest_versions().filter(Q(team=None) | Q(team__in=teams))
    return {row.name: PublishedTool(row.name, row.pk, row.schema, row.variants) for row in found}


def newest_ids() -> dict[str, UUID]:
    """The id of the newest published version of every tool, by name."""
    return dict(newest_versions().values_list("name", "pk"))


def newest_versions() -> QuerySet[ToolVersion]:
    """The newest published version of every tool, by name."""
    return ToolVersion.objects.order_by("name", "-published_at", "-id").distinct("name")


def _checked(declaration: Declaration) -> dict[str, Any]:
    names = [variant.name for variant in declaration.variants]
    if not names or len(set(names)) < len(names):
        raise ValueError(f"tool {declaration.name}: it needs at least one variant, and each a name of its own")
    if len({variant.contract.by_agent for variant in declaration.variants}) > 1:
        raise ValueError(f"tool {declaration.name}: either the agent carries out every variant or none")
    try:
        for schema in (declaration.schema, *(variant.when for variant in declaration.variants)):
            check_schema(schema)
    except ValueError as error:
        raise ValueError(f"tool {declaration.name}: {error}") from error
    return declaration.content()


def _entry(tool_version: ToolVersion, actor: Actor) -> audit.Entry:
    return audit.Entry(
        stream=audit.SYSTEM_STREAM,
        actor=actor,
        verb="publish",
        subject=f"tool {tool_version.name}",
        after=tool_version.version,
        details={"sha256": tool_version.sha256},
    )
