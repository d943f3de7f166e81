"""The same person gives the same answer again (S18). Where the words differ, nobody may believe that they were kept."""

from __future__ import annotations

from datetime import datetime

from approvals.casework.case_work import said


def recorded_before(kind: str, at: datetime, reason: str) -> str:
    """What a person is told who repeats an answer with other words."""
    return (
        f"You answered “{kind}” already, at {said(at)}: {reason} That stands, and what you wrote now was not recorded."
    )
