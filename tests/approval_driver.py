"""Speaks the approvers' verbs: puts policies in force, has steps asked for, and answers as a person would."""

from __future__ import annotations

import json
from typing import Any

from django.contrib.auth.models import User

from approvals import requests
from approvals.models import Decision
from approvals.rules import policy_versions
from checkpoint.models import Approval, PolicyVersion, Workflow
from checkpoint.people import Actor
from checkpoint.states import Decision as DecisionKind
from checkpoint.states import WorkflowStatus
from tests import factories
from tests.journal_driver import OPAQUE, JournalDriver, submit

OPERATOR = Actor("tests", "command")


def in_force(*rules: dict[str, Any], **defaults: Any) -> PolicyVersion:
    """Puts a policy with these rules in force."""
    seen = policy_versions.in_force().number
    named = [{"name": f"rule {index}", **each} for index, each in enumerate(rules)]
    text = json.dumps({"defaults": defaults, "rules": named}) + f" # after version {seen}"
    return policy_versions.activate(text=text, actor=OPERATOR, user=None, reason="tests", seen=seen)


def ask(**approval: Any) -> PolicyVersion:
    """Puts a policy in force that asks this for every step."""
    return in_force({"set": {"approval": {"needed": 1, **approval}}})


def approver(name: str = "ann", *, groups: tuple[str, ...] = ("Approver",), team: str = "Default") -> User:
    """A person of the team who may answer."""
    return factories.person(name, groups=groups, teams=[factories.team(team)])


def pending(workflow: Workflow) -> Approval:
    """The one request about the workflow that is open."""
    return Approval.objects.get(workflow=workflow, status="pending", part_of=None)


def answer(approval: Approval, person: User, kind: DecisionKind = DecisionKind.APPROVE, **more: Any) -> Decision:
    """Answers what the request shows."""
    return requests.answer(
        approval_id=approval.pk, kind=kind, person=person, channel="command",
        **{"reason": "looks right", "arguments_hash": approval.shown_hash, **more},
    )  # fmt: skip


def requested(*steps: dict[str, Any], user: User | None = None, **approval: Any) -> tuple[Workflow, JournalDriver]:
    """A workflow, submitted by the user if one is given, whose first step waits for the approval."""
    ask(**approval)
    workflow, driver = submit(OPAQUE, *steps, user=user), JournalDriver()
    assert driver.turn() == []
    return workflow, driver


def status(workflow: Workflow) -> WorkflowStatus:
    """The workflow's status as it is now."""
    workflow.refresh_from_db()
    return WorkflowStatus(workflow.status)
