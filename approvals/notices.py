"""The sole writer of new notices: in sets, in the transaction of the change that they tell of.

A change that is rolled back leaves no notice, and one that is committed has all of its notices. Nothing is sent here.
Who is told: of a question, everybody who may answer it; of an answer and of the end, only who submitted the workflow
(S39). The uniqueness of (event, recipient, kind) makes a repetition harmless.
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from django.conf import settings

from approvals.models import Decision
from approvals.notice_rules import NoticeKind
from approvals.permissions import DECIDE_CASE, RECEIVE_ESCALATIONS
from checkpoint import statements
from checkpoint.announcements import Announcement
from checkpoint.permissions import VIEW_ALL_WORKFLOWS
from checkpoint.transactions import require_transaction

# A permission counts as `User.has_perm` counts it: the account's own, a group's, or a superuser's.
_HOLDS = """(person.is_superuser OR EXISTS (
  SELECT FROM auth_permission AS permission JOIN django_content_type AS type ON type.id = permission.content_type_id
  WHERE type.app_label || '.' || permission.codename = {permission} AND (
    EXISTS (SELECT FROM auth_user_user_permissions AS own
            WHERE own.user_id = person.id AND own.permission_id = permission.id)
    OR EXISTS (SELECT FROM auth_user_groups AS membership
               JOIN auth_group_permissions AS given ON given.group_id = membership.group_id
               WHERE membership.user_id = person.id AND given.permission_id = permission.id))))"""
_IN_TEAM = """EXISTS (SELECT FROM checkpoint_team_members AS membership
  WHERE membership.user_id = person.id AND membership.team_id = workflow.team_id)"""

_DECIDERS = f"""SELECT person.id FROM auth_user AS person
  WHERE person.is_active AND {_IN_TEAM} AND {_HOLDS.format(permission="%(right)s")}"""
_ON_CALL = f"""SELECT person.id FROM auth_user AS person
  WHERE person.is_active AND {_HOLDS.format(permission="%(right)s")}
    AND ({_IN_TEAM} OR {_HOLDS.format(permission="%(view_all)s")})"""
# Without an address nobody is told, and agents' accounts have none: a row for each of their workflows would be for
# nothing. Nobody is told of what they did themselves.
_REQUESTER = """SELECT person.id FROM auth_user AS person
  WHERE person.id = workflow.submitted_by_id AND person.is_active AND person.email <> ''
    AND person.id IS DISTINCT FROM %(doer)s"""
_CHANNELS = """SELECT channel.id FROM approvals_noticechannel AS channel
  WHERE channel.enabled AND %(kind)s = ANY(channel.kinds)
    AND (channel.team_id IS NULL OR channel.team_id = workflow.team_id)"""

_WRITE = """
INSERT INTO approvals_notice (id, kind, workflow_id, case_id, person_id, channel_id, recipient, state, created_at,
  due_at, attempt_count, attempts_allowed, detail)
SELECT gen_random_uuid(), %(kind)s, workflow.id, {case_id}, recipient.person_id, recipient.channel_id, recipient.name,
  'waiting', %(at)s, {due_at}, 0, %(attempts)s, ''
FROM {events}
CROSS JOIN LATERAL (
  SELECT person.id AS person_id, NULL::uuid AS channel_id, 'person/' || person.id AS name FROM ({people}) AS person
  UNION ALL
  SELECT NULL, channel.id, 'channel/' || channel.id FROM ({channels}) AS channel) AS recipient
{more}
ON CONFLICT DO NOTHING
"""
_CASES = """checkpoint_case AS question JOIN checkpoint_workflow AS workflow ON workflow.id = question.workflow_id
  AND question.id = ANY(%(events)s)"""
_WORKFLOWS = "(SELECT * FROM checkpoint_workflow WHERE id = ANY(%(events)s)) AS workflow"


def _statement(people: str, *, events: str = _CASES, due_at: str = "%(at)s", more: str = "") -> str:
    case_id = "question.id" if events == _CASES else "NULL"
    return _WRITE.format(case_id=case_id, due_at=due_at, events=events, people=people, channels=_CHANNELS, more=more)


_ASK = _statement(_DECIDERS)
_TELL_OF_DECISION = _statement(_REQUESTER)
_TELL_OF_END = _statement(_REQUESTER, events=_WORKFLOWS)
_ESCALATE = _statement(_ON_CALL)
# Who has not even got the question yet (quiet hours, a mail server that is away) is reminded so much later.
_REMIND = _statement(
    _DECIDERS,
    due_at="CASE WHEN asked.due_at IS NULL THEN %(at)s ELSE asked.due_at + %(remind_after)s END",
    more="""LEFT JOIN approvals_notice AS asked ON asked.case_id = question.id AND asked.recipient = recipient.name
  AND asked.kind = 'asked' AND asked.state IN ('waiting', 'sending')""",
)

# A question that nobody was told of is escalated at once.
_SET_TIMERS = """
INSERT INTO approvals_noticetimer (id, kind, case_id, due_at)
SELECT gen_random_uuid(), timer.kind, question.id, CASE
  WHEN timer.kind = 'escalation' AND NOT EXISTS (SELECT FROM approvals_notice WHERE case_id = question.id) THEN %(at)s
  ELSE %(at)s + timer.after END
FROM checkpoint_case AS question
CROSS JOIN (VALUES ('reminder', %(remind_after)s::interval), ('escalation', %(escalate_after)s::interval))
  AS timer(kind, after)
WHERE question.id = ANY(%(events)s)
ON CONFLICT DO NOTHING
"""


def hear(announcement: Announcement, **kwargs: Any) -> None:
    """Writes the notices of what a verb opened and ended, in that verb's transaction."""
    if announcement.opened_cases:
        _write(_ASK, NoticeKind.ASKED, announcement.opened_cases, at=announcement.at, right=DECIDE_CASE)
        statements.change(
            _SET_TIMERS,
            events=announcement.opened_cases,
            at=announcement.at,
            remind_after=settings.CHECKPOINT_REMIND_AFTER,
            escalate_after=settings.CHECKPOINT_ESCALATE_AFTER,
        )
    if announcement.ended_workflows:
        _write(_TELL_OF_END, NoticeKind.OUTCOME, announcement.ended_workflows, at=announcement.at, doer=None)


def tell_of_decision(decision: Decision) -> None:
    """Tells who submitted the workflow what was decided about a case, unless it is the same person."""
    assert decision.case_id is not None, "answers to requests for approval are not told of yet"
    _write(_TELL_OF_DECISION, NoticeKind.DECIDED, [decision.case_id], at=decision.decided_at, doer=decision.person_id)


def remind(case_ids: Sequence[uuid.UUID], *, at: datetime) -> int:
    """Tells those who may answer that the questions are still open; returns how many notices that makes."""
    after = settings.CHECKPOINT_REMIND_AFTER
    return _write(_REMIND, NoticeKind.REMINDER, case_ids, at=at, right=DECIDE_CASE, remind_after=after)


def escalate(case_ids: Sequence[uuid.UUID], *, at: datetime) -> int:
    """Tells those on call that nobody has answered; returns how many notices that makes."""
    return _write(
        _ESCALATE, NoticeKind.ESCALATION, case_ids, at=at, right=RECEIVE_ESCALATIONS, view_all=VIEW_ALL_WORKFLOWS
    )


def _write(statement: str, kind: NoticeKind, events: Sequence[uuid.UUID], **parameters: Any) -> int:
    require_transaction()
    attempts = settings.CHECKPOINT_NOTICE_ATTEMPTS
    return statements.change(statement, kind=kind.value, events=list(events), attempts=attempts, **parameters)
