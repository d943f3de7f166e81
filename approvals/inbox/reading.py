"""A list that somebody is reading: its rows stay where they are while the queue goes on.

What came meanwhile is counted and waits until the reader asks for it. What was answered, put aside or taken on by
somebody keeps its place and says so.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from approvals.inbox import question_list, review_queue
from approvals.inbox.question_list import Question
from checkpoint.permissions import Person
from checkpoint.queries import Page


@dataclass(frozen=True)
class Reading:
    """What the reader has in view.

    Attributes:
        following: as a page's.
        arrived: how many questions belong on this page and are not in view yet.
        was_full: whether there were more questions behind the page when its rows were put in view.
    """

    rows: Sequence[Question]
    following: UUID | None
    arrived: int = 0
    was_full: bool = False

    @property
    def in_view(self) -> str:
        """The rows by id, for the next request."""
        return ",".join(str(question.about.pk) for question in self.rows)


def begin(found: Page[Question]) -> Reading:
    """Somebody opens the list, or asks for what came meanwhile."""
    return Reading(found.rows, found.following, was_full=found.following is not None)


def go_on(person: Person, found: Page[Question], *, in_view: Sequence[UUID], was_full: bool) -> Reading:
    """The same rows as they are now, beside what the list would hold for somebody who opens it now.

    A row that moved up from a page behind, because one before it was answered, has not arrived: it was there.
    """
    current = {question.about.pk: question for question in found.rows}
    missing = [known for known in in_view if known not in current]
    if missing:
        current |= question_list.named(person, missing[: review_queue.PAGE_SIZE])
    rows = [current[known] for known in in_view if known in current]
    return Reading(rows, found.following, _arrived(found.rows, set(in_view), was_full=was_full), was_full)


def _arrived(rows: Sequence[Question], in_view: set[UUID], *, was_full: bool) -> int:
    known = [place for place, question in enumerate(rows) if question.about.pk in in_view]
    end = known[-1] + 1 if known and was_full else len(rows)
    return sum(question.about.pk not in in_view for question in rows[:end])
