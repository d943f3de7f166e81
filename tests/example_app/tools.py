"""The smallest tool there can be."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pydantic import BaseModel, ConfigDict

from checkpoint.contracts import Contract, RecoveryClass, Reversibility, Variant
from checkpoint.outcomes import Inconclusive, Inspection, NotVisible, Receipt, Verification
from workers.registry import Call


class Greeting(BaseModel):
    """Whom to greet."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    name: str


class Greet:
    """Answers with a greeting."""

    name = "example.greet"
    version = "1"
    summary = "Greets somebody"
    Arguments = Greeting

    def variants(self) -> Sequence[Variant]:
        """It has no effect."""
        return [Variant("read", Contract(RecoveryClass.READ_ONLY, Reversibility.NONE_NEEDED))]

    def execute(self, arguments: Greeting, call: Call) -> Receipt:
        """Greets."""
        return Receipt(facts={"text": f"Hello {arguments.name}"})

    def inspect(self, arguments: Any, call: Call) -> Inspection:
        """Never called: the contract says so."""
        return Inconclusive("there is nothing to look up")

    def verify(self, arguments: Any, call: Call) -> Verification:
        """Never called: the contract says so."""
        return NotVisible("there is nothing to see")


TOOLS = [Greet()]
