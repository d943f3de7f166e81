"""The states of a bulk job and of its items, with every arrow. Plain Python, in the form of `checkpoint.states`.

The django-fsm methods, the PostgreSQL triggers, `docs/bulk.md` and the tests read these tables.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

from checkpoint.states import Decision


class BulkJobStatus(StrEnum):
    """A draft is a preview: nothing is answered before a person starts it."""

    DRAFT = "draft"
    RUNNING = "running"
    DONE = "done"
    ABORTED = "aborted"


class BulkResult(StrEnum):
    """What became of one item.

    An item of an aborted job that nobody came to stays pending. `moved`: somebody or something else answered or changed
    it meanwhile. `refused`: everything else that kept the answer from being recorded.
    """

    PENDING = "pending"
    DONE = "done"
    REFUSED = "refused"
    MOVED = "moved"


class BulkNoun(StrEnum):
    """What a bulk job answers; never both."""

    CASE = "case"
    APPROVAL = "approval"


J = BulkJobStatus
BULK_JOB_INITIAL = frozenset({J.DRAFT})
BULK_JOB_ARROWS: Mapping[BulkJobStatus, frozenset[BulkJobStatus]] = {
    J.DRAFT: frozenset({J.RUNNING, J.ABORTED}),
    J.RUNNING: frozenset({J.DONE, J.ABORTED}),
    J.DONE: frozenset(),
    J.ABORTED: frozenset(),
}

ANSWERS: Mapping[BulkNoun, tuple[Decision, ...]] = {
    BulkNoun.CASE: (Decision.CONFIRM, Decision.RETRY, Decision.ABANDON, Decision.CONTINUE, Decision.ACKNOWLEDGE),
    BulkNoun.APPROVAL: (Decision.APPROVE, Decision.REJECT),
}


def noun(kind: Decision) -> BulkNoun:
    """What an answer of this kind is given to."""
    return next(noun for noun, kinds in ANSWERS.items() if kind in kinds)
