"""Publishes the tools of this code, so that plans can be held against their contracts without it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from checkpoint.models import ToolVersion
from checkpoint.people import Actor
from checkpoint.planning.argument_schemas import closed
from checkpoint.tool_versions import Declaration, publish_tools
from workers.registry import Tool, argument_rules

ACTOR = Actor(name="workers", channel="engine")


def publish(tools: Iterable[Tool]) -> list[ToolVersion]:
    """Publishes what is new of these tools and returns it."""
    return publish_tools([declaration(tool) for tool in tools], actor=ACTOR)


def _schema(tool: Tool) -> dict[str, Any]:
    schema: dict[str, Any] = closed(tool.Arguments.model_json_schema())
    rules = argument_rules(tool)
    return {**schema, "allOf": [*schema.get("allOf", []), *rules]} if rules else schema


def declaration(tool: Tool) -> Declaration:
    """What a tool says of itself."""
    return Declaration(
        name=tool.name,
        version=tool.version,
        summary=tool.summary,
        schema=_schema(tool),
        variants=tuple(tool.variants()),
    )
