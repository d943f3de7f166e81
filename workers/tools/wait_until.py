"""`wait.until`: nothing happens before a time. The journal waits; a worker is called once the time has come."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Annotated, Any

from pydantic import Field

from checkpoint.contracts import Contract, RecoveryClass, Reversibility, Variant
from checkpoint.outcomes import Absent, Inspection, Receipt, Verification, Visible
from workers.registry import Call
from workers.tools.http_arguments import Model

LONGEST = 366 * 24 * 3600  # seconds

_DAY = r"20[0-9]{2}-[0-9]{2}-[0-9]{2}"
_TIME = rf"^{_DAY}T[0-9]{{2}}:[0-5][0-9]:[0-5][0-9](?:\.[0-9]{{1,6}})?(?:Z|[+-][0-9]{{2}}:[0-9]{{2}})$(?!\n)"
_TIME_WORDS = 'a time with its offset, like "2026-12-01T09:00:00Z"'


def _exactly_one(schema: dict[str, Any]) -> None:
    """One of the two, and never null."""
    schema["minProperties"] = schema["maxProperties"] = 1
    for name in ("until", "seconds"):
        (wanted, _) = schema["properties"][name].pop("anyOf")
        schema["properties"][name] = wanted | {"title": name.capitalize()}


class WaitArguments(Model):
    """A time, or seconds from when the step's turn comes. Both are of the database's clock."""

    model_config = Model.model_config | {"json_schema_extra": _exactly_one}

    until: (
        Annotated[
            str,
            Field(pattern=_TIME, max_length=40, json_schema_extra={"format": "date-time", "x-must-be": _TIME_WORDS}),
        ]
        | None
    ) = None
    seconds: Annotated[float, Field(gt=0, le=LONGEST)] | None = None


class WaitUntil:
    """Has no effect. That the journal hands the call out is the proof that the time has come."""

    name = "wait.until"
    version = "1"
    summary = "Waits until a time, or for a while"
    Arguments = WaitArguments

    def variants(self) -> Sequence[Variant]:
        """One for a time and one for a duration; neither has an outcome to read."""
        at = Contract(RecoveryClass.READ_ONLY, Reversibility.NONE_NEEDED, starts_at="until", where_to_look=_LOOK)
        after = replace(at, starts_at="", starts_after="seconds")
        return [Variant("time", at, {"required": ["until"]}), Variant("duration", after, {"required": ["seconds"]})]

    def execute(self, arguments: WaitArguments, call: Call) -> Receipt:
        """The time has come."""
        return Receipt(facts={"waited": True})

    def inspect(self, arguments: WaitArguments, call: Call) -> Inspection:
        """There is nothing to look up."""
        return Absent()

    def verify(self, arguments: WaitArguments, call: Call) -> Verification:
        """There is nothing to read."""
        return Visible()


_LOOK = "Nowhere: waiting has no effect. The step's evidence says until when it waits."
