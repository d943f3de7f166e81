"""What a tool promises: its recovery class, times, and where a person should look.

A contract is data. It is published with the tool's version and pinned by every step, so that the next action after a
crash is decided by what was promised when the step was planned, on any process, without the tool's code.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, field, fields
from enum import StrEnum
from typing import Any


class RecoveryClass(StrEnum):
    """What may be done once a call may have been sent and no outcome is recorded (DESIGN.md section 3)."""

    READ_ONLY = "read_only"
    IDEMPOTENT = "idempotent"
    QUERYABLE = "queryable"
    OPAQUE = "opaque"


class Reversibility(StrEnum):
    """What undoing the effect would take."""

    NONE_NEEDED = "none_needed"
    COMPENSABLE = "compensable"
    IRREVERSIBLE = "irreversible"


EVERY_FACT = "*"

_LATER = (
    "in_flight",
    "starts_per_minute",
    "burst",
    "starts_at",
    "starts_after",
    "asks",
    "by_agent",
    "compensation",
    "facts",
    "facts_hold",
)


@dataclass(frozen=True)
class Compensation:
    """The call that undoes an effect.

    Attributes:
        tool: name of the tool; its newest version is used.
        arguments: its arguments, with references as in a plan: `{"$input": "/…"}` reads the arguments of the step that
            is undone, `{"$result": "effect#/operation_id"}` and `{"$result": "effect#/facts/…"}` its receipt.
    """

    tool: str
    arguments: dict[str, Any]


@dataclass(frozen=True)
class Contract:
    """One set of promises. All times are seconds.

    Attributes:
        recovery: the recovery class.
        reversibility: what undoing takes.
        deadline: total time of one call, from just before its first byte; counted on the boot clock.
        settle: time after the deadline in which a request that was sent can still land.
        key_lifetime: how long the provider remembers a key, from the first send; None means for ever.
        concurrent_same_key_safe: the provider copes with the same key twice at the same time.
        can_inspect: the tool can look an effect up by key or operation id.
        can_verify: the tool can read the outcome by another path than the action.
        where_to_look: one sentence for the person who has to find out.
        link: optional address template; `{key}` and `{operation_id}` are filled in.
        in_flight: so many of the tool's steps may be started at once, by all workers; None for no limit.
        starts_per_minute: so many starts of the tool, by all workers; None for no limit.
        burst: so many of these at once after a pause; None for two seconds' worth.
        starts_at: name of the argument with the time before which the call is not made (RFC 3339, with an offset).
        starts_after: name of the argument with the seconds to wait from when the step's turn comes.
        asks: a person makes the effect by answering a form; the tool is never called (checkpoint/turns/human_tasks.py).
        by_agent: the agent makes the call itself, under its fence; workers at most look up and read back.
        compensation: how a compensable effect is undone; None where only a person can.
        facts: names of those of the receipt's facts that a resume packet quotes to an agent; EVERY_FACT, where the
            step's own arguments say which facts are kept.
        facts_hold: for so long such a fact counts as fresh once it was read; None where it does not change.
    """

    recovery: RecoveryClass
    reversibility: Reversibility
    deadline: float = 30.0
    settle: float = 5.0
    key_lifetime: float | None = None
    concurrent_same_key_safe: bool = False
    can_inspect: bool = False
    can_verify: bool = False
    where_to_look: str = ""
    link: str = ""
    in_flight: int | None = None
    starts_per_minute: float | None = None
    burst: int | None = None
    starts_at: str = ""
    starts_after: str = ""
    asks: bool = False
    by_agent: bool = False
    compensation: Compensation | None = None
    facts: tuple[str, ...] = ()
    facts_hold: float | None = None

    @property
    def waits(self) -> bool:
        """Whether the arguments name a time before which nothing is called."""
        return bool(self.starts_at or self.starts_after)

    def __post_init__(self) -> None:
        if self.recovery is RecoveryClass.QUERYABLE and not self.can_inspect:
            raise ValueError("a queryable contract needs can_inspect=True and a tool with inspect()")
        if self.recovery is RecoveryClass.OPAQUE and self.can_inspect:
            raise ValueError("an opaque contract has no lookup: with one that can be trusted, it is queryable")
        if self.by_agent and self.asks:
            raise ValueError("either the agent makes the call or a person does")
        if self.compensation is not None and self.reversibility is not Reversibility.COMPENSABLE:
            raise ValueError("only a compensable effect has a compensation")
        times = (self.deadline, self.settle, 0.0 if self.key_lifetime is None else self.key_lifetime)
        if not all(map(math.isfinite, times)) or self.deadline <= 0 or min(times) < 0:
            raise ValueError("deadline must be above 0, settle and key_lifetime at least 0 seconds, all finite")

        limits = [limit for limit in (self.in_flight, self.starts_per_minute, self.burst) if limit is not None]
        if self.facts_hold is not None:
            limits.append(self.facts_hold)
        if not all(math.isfinite(limit) and limit > 0 for limit in limits):
            raise ValueError("limits and facts_hold must be above 0 and finite, where they are given")

    def to_json(self) -> dict[str, Any]:
        """The contract as JSON values, the form in which a tool version stores it.

        What came later and is not given is left out: tools published before have not changed.
        """
        values = {f.name: getattr(self, f.name) for f in fields(self)}
        values["compensation"] = asdict(self.compensation) if self.compensation else None
        values["facts"] = list(self.facts)
        return {name: value for name, value in values.items() if value or name not in _LATER}

    @classmethod
    def from_json(cls, stored: dict[str, Any]) -> Contract:
        """Reads what `to_json` wrote."""
        return cls(
            **{
                **stored,
                "recovery": RecoveryClass(stored["recovery"]),
                "reversibility": Reversibility(stored["reversibility"]),
                "compensation": Compensation(**undo) if (undo := stored.get("compensation")) else None,
                "facts": tuple(stored.get("facts", ())),
            }
        )


@dataclass(frozen=True)
class Variant:
    """A contract that holds for the arguments which match a JSON Schema.

    Attributes:
        name: short word, unique within the tool, shown to people ("keyed", "opaque").
        contract: the promises.
        when: JSON Schema over the canonical arguments; the empty schema matches everything.
    """

    name: str
    contract: Contract
    when: dict[str, Any] = field(default_factory=dict)
