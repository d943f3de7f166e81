"""`file.append` is refused, where a plan is submitted, with what to use in its place.

An append has no key. After a crash, the text at the end of a file may be ours, or the same text of somebody else, or be
gone because the file was rewritten; a torn write leaves a part of it. Sending again can double it, so every lost answer
would be a question.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pydantic import BaseModel, ConfigDict

from checkpoint.contracts import Contract, RecoveryClass, Reversibility, Variant
from checkpoint.outcomes import Inconclusive, Inspection, NotApplied, NotVisible, Receipt, Verification
from workers.registry import Call

WHY = (
    "file.append is not offered: when an append is interrupted nobody can tell whether its text is in the file, so it "
    "could come twice. Write the whole content with file.write, or one file for each record, with mode if_absent"
)


class FileAppendArguments(BaseModel):
    """Nothing is accepted."""

    model_config = ConfigDict(extra="allow", json_schema_extra={"not": {}, "x-refused": WHY})


class FileAppend:
    """Known by name, so that a plan that asks for it is told more than "unknown tool"."""

    name = "file.append"
    version = "1"
    summary = "Refused: use file.write"
    Arguments = FileAppendArguments

    def variants(self) -> Sequence[Variant]:
        """Nothing is promised, for nothing is done."""
        where = "Nowhere: nothing is ever appended."
        return [Variant("refused", Contract(RecoveryClass.OPAQUE, Reversibility.IRREVERSIBLE, where_to_look=where))]

    def execute(self, arguments: Any, call: Call) -> Receipt:
        """Raises NotApplied."""
        raise NotApplied(f"nothing was written: {WHY}", code="not_offered", permanent=True)

    def inspect(self, arguments: Any, call: Call) -> Inspection:
        """There is nothing to look up."""
        return Inconclusive(WHY)

    def verify(self, arguments: Any, call: Call) -> Verification:
        """There is nothing to see."""
        return NotVisible(WHY)
