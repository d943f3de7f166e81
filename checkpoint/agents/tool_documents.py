"""The contract of a tool that agents carry out themselves, read from a document with all faults at once.

Nothing of it runs here: the document says what the tool's arguments are, and what may be concluded after a crash.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from typing import Any

from checkpoint.contracts import Contract, RecoveryClass, Reversibility, Variant
from checkpoint.errors import Fault, SubmissionInvalid
from checkpoint.planning.argument_schemas import check_schema, closed
from checkpoint.planning.documents import Document
from checkpoint.planning.members import Members, bytes_of
from checkpoint.tool_versions import Declaration

LONGEST_CALL = 86_400.0  # seconds
LONGEST_KEY_LIFETIME = 366 * 86_400.0  # seconds
LARGEST_SCHEMA = 64 * 1024  # bytes of canonical JSON

_NAME = re.compile(r"[a-z][a-z0-9_]*(\.[a-z0-9_]+)*")
_LONGEST_NAME = 60
_VERSION = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.+-]{0,39}")
# Without a lookup of ours there is none: a contract that needs one comes with a worker's tool.
_RECOVERY = [RecoveryClass.READ_ONLY, RecoveryClass.IDEMPOTENT, RecoveryClass.OPAQUE]


def declaration_in(document: Document, *, team: str) -> Declaration:
    """What the document declares, under a name that begins with the team's slug.

    Raises:
        SubmissionInvalid: every fault.
    """
    faults: list[Fault] = []
    members = Members(document.value, "", faults)
    members.refuse_reasoning()
    name, version = members.take("name", str) or "", members.take("version", str, default="1") or ""
    if name and (not _NAME.fullmatch(name) or len(name) > _LONGEST_NAME):
        members.fault("name", message=f"must be words of a-z, 0-9 and _ with dots between, at most {_LONGEST_NAME}")
    if not _VERSION.fullmatch(version):
        members.fault("version", message="must be at most 40 letters, digits and _ . + -")
    summary = members.text("summary", longest=1000)
    schema = _schema(members)
    contract = _contract(members)
    members.refuse_the_rest()
    if contract is None or document.faults or faults:
        raise SubmissionInvalid([*document.faults, *faults])
    return Declaration(f"{team}:{name}", version, summary, schema, (Variant("agent", contract),))


def _schema(members: Members) -> dict[str, Any]:
    schema = members.take("schema", dict) or {}
    if (size := bytes_of(schema)) > LARGEST_SCHEMA:
        members.fault("schema", message=f"has {size} bytes; the limit is {LARGEST_SCHEMA}")
        return {}
    try:
        check_schema(schema)
        for pattern in _patterns(schema):
            re.compile(pattern)
    except (ValueError, re.error) as error:
        members.fault("schema", message=str(error))
        return {}
    read: dict[str, Any] = closed({"type": "object", **schema})
    return read


def _patterns(schema: Any) -> Iterator[str]:
    """Every regular expression in a schema; one that cannot be read would be found by the first plan."""
    if isinstance(schema, dict):
        if isinstance(schema.get("pattern"), str):
            yield schema["pattern"]
        if isinstance(schema.get("patternProperties"), dict):
            yield from schema["patternProperties"]
    for part in schema.values() if isinstance(schema, dict) else schema if isinstance(schema, list) else ():
        yield from _patterns(part)


def _contract(members: Members) -> Contract | None:
    recovery = _choice(members, "recovery", [each.value for each in _RECOVERY])
    reversibility = _choice(members, "reversibility", [each.value for each in Reversibility])
    deadline = _seconds(members, "deadline", 300.0, LONGEST_CALL, least=1.0)
    settle = _seconds(members, "settle", 5.0, LONGEST_CALL)
    lifetime = None
    if members.value("key_lifetime", None) is not None:
        lifetime = _seconds(members, "key_lifetime", 0.0, LONGEST_KEY_LIFETIME)
    look, link = members.text("where_to_look", longest=1000, default=""), members.text("link", longest=500, default="")
    if link and not link.startswith("https://"):
        members.fault("link", message="must begin with https://; {key} and {operation_id} are filled in")
    if not recovery or not reversibility:
        return None
    return Contract(
        RecoveryClass(recovery),
        Reversibility(reversibility),
        deadline=deadline,
        settle=settle,
        key_lifetime=lifetime,
        where_to_look=look,
        link=link,
        by_agent=True,
    )


def _choice(members: Members, name: str, choices: list[str]) -> str:
    value = members.take(name, str)
    if value is None or value in choices:
        return value or ""
    more = "; one that can be looked up comes with a worker's tool" if value == RecoveryClass.QUERYABLE else ""
    members.fault(name, message=f"must be one of {', '.join(choices)}{more}")
    return ""


def _seconds(members: Members, name: str, default: float, most: float, *, least: float = 0.0) -> float:
    value = members.value(name, default)
    fits = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    if not fits or not least <= value <= most:
        members.fault(name, message=f"must be a number of seconds from {least:g} to {most:g}")
        return max(default, least)
    return float(value)
