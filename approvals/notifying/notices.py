"""The sole writer of new notices: in sets, in the transaction of the change that they tell of.

A change that is rolled back leaves no notice, and one that is committed has all of its notices. Nothing is sent here.
Who is told: of a question, everybody who may answer it; of an assignment, whoever got it; of an answer and of the end,
only who submitted the workflow (S39). The uniqueness of (event, recipient, kind) makes a repetition harmless.
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.conf import settings

from approvals.models import Decision
from approvals.notifying.notice_recipients import APPROVERS, ASSIGNEE, CHANNELS, COSIGNERS, DECIDERS, ON_CALL, REQUESTER
from approvals.notifying.notice_rules import NoticeKind
from approvals.permissions import DECIDE_APPROVAL, DECIDE_CASE, RECEIVE_ESCALATIONS
from checkpoint.permissions import VIEW_ALL_WORKFLOWS
from checkpoint.rows import statements
from checkpoint.rows.announcements import Announcement
from checkpoint.transactions import require_transaction

_WRITE = """
INSERT INTO approvals_notice (id, kind, workflow_id, {column} person_id, channel_id, recipient, state, created_at,
  due_at, attempt_count, attempts_allowed, detail)
SELECT gen_random_uuid(), %(kind)s, workflow.id, {value} recipient.person_id, recipient.channel_id, recipient.name,
  'waiting', %(at)s, {due_at}, 0, %(attempts)s, ''
FROM {table} AS event JOIN checkpoint_workflow AS workflow ON workflow.id = {workflow}
CROSS JOIN LATERAL (
  SELECT person.id AS person_id, NULL::uuid AS channel_id, 'person/' || person.id AS name FROM ({people}) AS person
  UNION ALL
  SELECT NULL, channel.id, 'channel/' || channel.id FROM ({channels}) AS channel) AS recipient
{more}
WHERE event.id = ANY(%(events)s)
ON CONFLICT DO NOTHING
"""
# Who has not even got the question yet (quiet hours, a mail server that is away) is reminded so much later.
_NOT_YET_ASKED = """LEFT JOIN approvals_notice AS asked ON asked.{column} = event.id AND asked.kind = 'asked'
  AND asked.recipient = recipient.name AND asked.state IN ('waiting', 'sending')"""
_AFTER_BEING_ASKED = "CASE WHEN asked.due_at IS NULL THEN %(at)s ELSE asked.due_at + %(remind_after)s END"

# A question that nobody was told of is escalated at once. One with an end is told again well before it.
_SET_TIMERS = """
INSERT INTO approvals_noticetimer (id, kind, {column}, due_at)
SELECT gen_random_uuid(), timer.kind, event.id, CASE
  WHEN timer.kind = 'escalation' AND NOT EXISTS (SELECT FROM approvals_notice WHERE {column} = event.id) THEN %(at)s
  ELSE %(at)s + {after} END
FROM {table} AS event
CROSS JOIN (VALUES ('reminder', %(remind_after)s::interval, 0.5), ('escalation', %(escalate_after)s::interval, 0.75))
  AS timer(kind, after, share)
WHERE event.id = ANY(%(events)s)
ON CONFLICT DO NOTHING
"""


@dataclass(frozen=True)
class _Question:
    """What a person is asked for, and the statements that tell of it.

    Attributes:
        right: who may answer.
    """

    table: str
    column: str
    people: str
    right: str
    after: str

    def write(self, people: str, *, due_at: str = "%(at)s", more: str = "") -> str:
        """The statement that writes notices about it."""
        return _WRITE.format(
            table=self.table, column=f"{self.column},", value="event.id,", workflow="event.workflow_id",
            people=people, channels=CHANNELS, due_at=due_at, more=more.format(column=self.column),
        )  # fmt: skip

    def ask(self, events: Sequence[uuid.UUID], at: datetime) -> None:
        """Tells who may answer, and sets the timers."""
        _write(self.write(self.people), NoticeKind.ASKED, events, at=at, right=self.right)
        statement = _SET_TIMERS.format(table=self.table, column=self.column, after=self.after)
        statements.change(statement, events=list(events), at=at, **_times())

    def remind(self, events: Sequence[uuid.UUID], *, at: datetime) -> None:
        """Tells those who may answer that it is still open."""
        statement = self.write(self.people, due_at=_AFTER_BEING_ASKED, more=_NOT_YET_ASKED)
        after = settings.CHECKPOINT_REMIND_AFTER
        _write(statement, NoticeKind.REMINDER, events, at=at, right=self.right, remind_after=after)

    def escalate(self, events: Sequence[uuid.UUID], *, at: datetime) -> None:
        """Tells those on call that nobody has answered."""
        _write(
            self.write(ON_CALL), NoticeKind.ESCALATION, events, at=at,
            right=RECEIVE_ESCALATIONS, view_all=VIEW_ALL_WORKFLOWS,
        )  # fmt: skip

    def tell_of_answer(self, event: uuid.UUID, *, at: datetime, doer: int | None) -> None:
        """Tells who submitted the workflow, unless it was that person who answered."""
        _write(self.write(REQUESTER), NoticeKind.DECIDED, [event], at=at, doer=doer)


CASES = _Question(
    "checkpoint_case", "case_id", DECIDERS, DECIDE_CASE,
    "least(timer.after, ((event.findings->>'answer_by')::timestamptz - %(at)s) * timer.share)",
)  # fmt: skip
APPROVALS = _Question(
    "checkpoint_approval", "approval_id", APPROVERS, DECIDE_APPROVAL,
    "least(timer.after, (event.expires_at - %(at)s) * timer.share)",
)  # fmt: skip

_TELL_OF_END = _WRITE.format(
    table="checkpoint_workflow", column="", value="", workflow="event.id", people=REQUESTER, channels=CHANNELS,
    due_at="%(at)s", more="",
)  # fmt: skip


def hear(announcement: Announcement, **kwargs: Any) -> None:
    """Writes the notices of what a verb opened and ended, in that verb's transaction."""
    if announcement.opened_cases:
        CASES.ask(announcement.opened_cases, announcement.at)
    if announcement.requested_approvals:
        APPROVALS.ask(announcement.requested_approvals, announcement.at)
    if announcement.ended_workflows:
        _write(_TELL_OF_END, NoticeKind.OUTCOME, announcement.ended_workflows, at=announcement.at, doer=None)


def tell_of_decision(decision: Decision) -> None:
    """Tells of the answer by which a case or a request for approval was settled."""
    question, event = (CASES, decision.case_id) if decision.case_id else (APPROVALS, decision.approval_id)
    assert event is not None, "a decision is about one of the two"
    question.tell_of_answer(event, at=decision.decided_at, doer=decision.person_id)


def tell_assignee(case_id: uuid.UUID, *, to: int, at: datetime) -> None:
    """Tells a person that somebody else gave them the case."""
    _write(CASES.write(ASSIGNEE), NoticeKind.ASSIGNED, [case_id], at=at, to=to)


def tell_cosigners(case_id: uuid.UUID, *, groups: Sequence[str], at: datetime) -> None:
    """Tells those whose answer to a case would count that it waits for a further person's.

    Args:
        groups: of which they are; empty for anybody who may decide.
    """
    statement = CASES.write(COSIGNERS)
    _write(statement, NoticeKind.SECOND_PERSON, [case_id], at=at, right=CASES.right, groups=list(groups))


def tell_further_approvers(approval_id: uuid.UUID, *, at: datetime) -> None:
    """Tells those who may answer a request, and have not, that it waits for a further person's approval."""
    statement = APPROVALS.write(APPROVALS.people)
    _write(statement, NoticeKind.SECOND_PERSON, [approval_id], at=at, right=APPROVALS.right)


def _times() -> dict[str, Any]:
    return {"remind_after": settings.CHECKPOINT_REMIND_AFTER, "escalate_after": settings.CHECKPOINT_ESCALATE_AFTER}


def _write(statement: str, kind: NoticeKind, events: Sequence[uuid.UUID], **parameters: Any) -> None:
    require_transaction()
    attempts = settings.CHECKPOINT_NOTICE_ATTEMPTS
    statements.change(statement, kind=kind.value, events=list(events), attempts=attempts, **parameters)
