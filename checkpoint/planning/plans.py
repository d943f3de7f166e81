"""A submitted workflow: read from a document and held against every rule, with all faults at once.

A plan that this module returns can be stored as it is. Goal and constraints are limited so that they always fit a
resume packet of 16 KiB, whole.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from checkpoint.canonical import canonical, sha256_hex
from checkpoint.errors import Fault, SubmissionInvalid, ValueNotCanonical
from checkpoint.planning.documents import Document
from checkpoint.planning.members import Members, bytes_of
from checkpoint.planning.plan_steps import INTENT_NAME, INTENT_RULE, PlannedStep, PublishedTool, StepsReader

# Bytes of canonical JSON.
LARGEST_GOAL = 4 * 1024
LARGEST_CONSTRAINT = 1024
LARGEST_CONSTRAINTS = 6 * 1024
LARGEST_INPUT = 256 * 1024
MOST_CONSTRAINTS = 50
# Seconds. Shorter than a minute asks people before an agent has started again; after a month nobody remembers.
SHORTEST_WAIT, LONGEST_WAIT = 60, 30 * 86_400

_KIND = re.compile(r"[a-z][a-z0-9_.-]{0,59}")


@dataclass(frozen=True)
class Plan:
    """A valid submission.

    Attributes:
        kind: one word by which people tell workflows apart ("refund").
        input: canonical JSON, to which arguments can refer.
        sealed: the agent will append no steps.
        agent_deadline: seconds that it waits for its agent before a person is asked; None as the policy says.
        reference: what its caller calls it, once in its team; empty where nobody has to find it again.
    """

    goal: str
    kind: str
    constraints: tuple[str, ...]
    input: str
    input_hash: str
    prompt_version: str
    sealed: bool
    steps: tuple[PlannedStep, ...]
    agent_deadline: int | None = None
    reference: str = ""


def parse_plan(document: Document, tools: Mapping[str, PublishedTool]) -> Plan:
    """The plan in a document.

    Args:
        tools: the newest published version of every tool, by name.

    Raises:
        SubmissionInvalid: every fault, ordered by place; those of reading the document among them.
    """
    faults: list[Fault] = []
    members = Members(document.value, "", faults)
    members.refuse_reasoning()
    input_text = _input(members)
    draft = Plan(
        goal=members.text("goal", longest=LARGEST_GOAL),
        kind=_kind(members),
        constraints=_constraints(members),
        input=input_text,
        input_hash=sha256_hex(input_text),
        prompt_version=members.text("prompt_version", longest=100, default=""),
        sealed=members.take("sealed", bool, default=True) is True,
        steps=StepsReader(tools, members.value("input", {}), faults).read(members.take("steps", list)),
        agent_deadline=_agent_deadline(members),
        reference=_reference(members),
    )
    members.refuse_the_rest()
    if everything := _all_faults(document.faults, faults):
        raise SubmissionInvalid(everything)
    return draft


def _all_faults(reading: list[Fault], rules: list[Fault]) -> list[Fault]:
    """Where something could not be read, what else seems wrong with it is only a consequence."""
    unreadable = {fault.path for fault in reading if fault.path}
    found = dict.fromkeys([*reading, *(fault for fault in rules if fault.path not in unreadable)])
    return sorted(found, key=lambda fault: _in_order(fault.path))


def _in_order(path: str) -> list[tuple[int, str]]:
    """Orders /steps/2 before /steps/10."""
    return [(int(part), "") if part.isdecimal() and len(part) < 10 else (-1, part) for part in path.split("/")]


def _kind(members: Members) -> str:
    kind = members.text("kind", longest=60, default="task")
    if kind and not _KIND.fullmatch(kind):
        members.fault("kind", message="must be one word such as refund or month-end, of a-z, 0-9 and _ . -")
    return kind


def _reference(members: Members) -> str:
    if members.value("reference", None) is None:
        return ""
    reference = members.take("reference", str) or ""
    if not INTENT_NAME.fullmatch(reference):
        members.fault("reference", message=INTENT_RULE)
    return reference


def _agent_deadline(members: Members) -> int | None:
    if members.value("agent_deadline", None) is None:
        return None
    seconds = members.take("agent_deadline", int)
    if seconds is not None and not SHORTEST_WAIT <= seconds <= LONGEST_WAIT:
        limits = f"from {SHORTEST_WAIT} to {LONGEST_WAIT} (30 days)"
        members.fault("agent_deadline", message=f"must be a number of seconds {limits}")
    return seconds


def _constraints(members: Members) -> tuple[str, ...]:
    constraints = members.take("constraints", list, []) or []
    if len(constraints) > MOST_CONSTRAINTS:
        members.fault("constraints", message=f"has {len(constraints)} entries; the limit is {MOST_CONSTRAINTS}")
        return ()
    total = sum(_constraint_size(members, index, constraint) for index, constraint in enumerate(constraints))
    if total > LARGEST_CONSTRAINTS:
        limit = f"the limit is {LARGEST_CONSTRAINTS}, so that they always fit a resume packet"
        members.fault("constraints", message=f"has {total} bytes in all; {limit}")
    return tuple(constraints)


def _constraint_size(members: Members, index: int, constraint: Any) -> int:
    if not isinstance(constraint, str) or not constraint.strip():
        members.fault("constraints", index, message="must be a sentence, as a string")
        return 0
    size = bytes_of(constraint)
    if size > LARGEST_CONSTRAINT:
        members.fault("constraints", index, message=f"has {size} bytes; the limit is {LARGEST_CONSTRAINT}")
    return size


def _input(members: Members) -> str:
    try:
        text = canonical(members.value("input", {}))
    except ValueNotCanonical:
        return ""  # reported with the document
    size = len(text.encode())
    if size > LARGEST_INPUT:
        members.fault(
            "input", message=f"has {size} bytes; the limit is {LARGEST_INPUT}; keep large things as artifacts"
        )
    return text
