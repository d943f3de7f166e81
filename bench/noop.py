"""A tool that does nothing, so that only the protocol's own cost is measured. Its verification is a real one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from pydantic import BaseModel, ConfigDict

from checkpoint.contracts import Contract, RecoveryClass, Reversibility, Variant
from checkpoint.outcomes import Absent, Inspection, Receipt, Verification, Visible
from workers.registry import Call


class Arguments(BaseModel):
    """A number, so that every step has arguments of its own."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    number: int


class Noop:
    """Does nothing, and says so when asked."""

    name: ClassVar[str] = "bench.noop"
    version: ClassVar[str] = "1"
    summary: ClassVar[str] = "Does nothing."
    Arguments: ClassVar[type[BaseModel]] = Arguments

    def variants(self) -> Sequence[Variant]:
        """One contract: repeatable, readable."""
        contract = Contract(
            recovery=RecoveryClass.IDEMPOTENT,
            reversibility=Reversibility.NONE_NEEDED,
            can_inspect=True,
            can_verify=True,
        )
        return [Variant("only", contract)]

    def execute(self, arguments: Any, call: Call) -> Receipt:
        """Returns a receipt at once."""
        return Receipt(operation_id=call.key[:12], facts={"number": arguments.number})

    def inspect(self, arguments: Any, call: Call) -> Inspection:
        """Knows of nothing."""
        return Absent()

    def verify(self, arguments: Any, call: Call) -> Verification:
        """Sees it at once."""
        return Visible({"number": arguments.number})
