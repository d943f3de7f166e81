"""Who gets a case from somebody else is told, and so is who may give the signature that is still missing (S39)."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import User

from approvals.casework import assignments
from approvals.decisions import decide
from approvals.models import Notice
from approvals.notifying.notice_rules import NoticeKind
from checkpoint.models import Case
from checkpoint.states import Decision as DecisionKind
from tests.approval_driver import answer as answer_request
from tests.approval_driver import pending, requested
from tests.case_driver import put_in_force
from tests.journal_driver import answer
from tests.notice_driver import approver, asked, person, told

pytestmark = pytest.mark.usefixtures("database")


def confirm(case: Case, by: str) -> None:
    step = case.step
    step.refresh_from_db()
    decide(
        case_id=case.pk, kind=DecisionKind.CONFIRM, person=User.objects.get(username=by), channel="command",
        reason=f"{by} looked", step_version=step.version, arguments_hash=step.arguments_hash,
    )  # fmt: skip


def test_s39_who_gets_a_case_is_told_once_and_who_takes_one_is_not() -> None:
    ada, bob = approver("ada"), approver("bob")
    case = asked()
    taken = assignments.claim(case_id=case.pk, person=ada, channel="command")
    assert told(NoticeKind.ASSIGNED) == {}
    given = assignments.assign(
        case_id=case.pk, to="bob", person=ada, channel="command", reason="I am away", seen=taken.pk
    )
    back = assignments.assign(case_id=case.pk, to="ada", person=bob, channel="command", reason="no", seen=given.pk)
    assignments.assign(case_id=case.pk, to="bob", person=ada, channel="command", reason="yes", seen=back.pk)
    assert told(NoticeKind.ASSIGNED) == {"ada": "waiting", "bob": "waiting"}


def test_s39_a_missing_signature_is_asked_of_those_who_may_still_give_it() -> None:
    put_in_force(
        {"rules": [{"name": "two", "set": {"decisions": {"outcome_unknown": {
            "confirm": {"needed": 3, "groups": ["Approver"]}, "abandon": {}}}}}]}
    )  # fmt: skip
    for name in ("ada", "bob", "cyd"):
        approver(name)
    person("opal", groups=("Operator",))
    case = asked()
    confirm(case, "ada")
    assert told(NoticeKind.SECOND_PERSON) == {"bob": "waiting", "cyd": "waiting"}
    confirm(case, "bob")
    assert Notice.objects.filter(kind=NoticeKind.SECOND_PERSON).count() == 2, "once for each person"
    confirm(case, "cyd")
    assert set(told(NoticeKind.SECOND_PERSON)) == {"bob", "cyd"}


def test_s39_a_further_approver_is_told_that_the_request_waits_for_them() -> None:
    for name in ("ann", "bob"):
        approver(name)
    workflow, _ = requested(needed=2)
    answer_request(pending(workflow), User.objects.get(username="ann"))
    assert told(NoticeKind.SECOND_PERSON) == {"bob": "waiting"}


def test_one_answer_that_is_enough_asks_nobody_else() -> None:
    approver("ada")
    answer(asked(), DecisionKind.RETRY)
    assert told(NoticeKind.SECOND_PERSON) == {}
