"""Four eyes on a case: the first answers are signatures, the last one is the decision (S16, S19, S25)."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from django.contrib.auth.models import User

from approvals import signatures
from approvals.decisions import Answered, decide
from approvals.models import Decision, Signature
from checkpoint import audit
from checkpoint.errors import AlreadySigned, CaseClosed, DecisionNotAllowed, Forbidden, StaleView
from checkpoint.models import Case, Evidence, PolicyVersion, Step, Workflow
from checkpoint.states import CaseStatus, StepStatus
from checkpoint.states import Decision as DecisionKind
from tests import factories
from tests.case_driver import at_once, entries, put_in_force, raised, worker

pytestmark = pytest.mark.usefixtures("database")

CONFIRM, RETRY, ABANDON = DecisionKind.CONFIRM, DecisionKind.RETRY, DecisionKind.ABANDON


def people_needed(**answers: dict[str, Any]) -> None:
    """Puts a policy in force that wants so many people for the answers to an unknown outcome."""
    rule = {"name": "four eyes", "set": {"decisions": {"outcome_unknown": answers}}}
    put_in_force({"rules": [rule]})


def answer(case: Case, person: User, kind: DecisionKind = CONFIRM, **more: Any) -> Answered:
    step = Step.objects.get(pk=case.step_id)
    seen: dict[str, Any] = {"step_version": step.version, "arguments_hash": step.arguments_hash}
    return decide(
        case_id=case.pk, kind=kind, person=person, channel="command", reason="I looked.", **seen | more
    )  # fmt: skip


def asked() -> tuple[Case, Callable[..., User]]:
    case = factories.case()
    return case, partial(worker, case)


def status(case: Case) -> tuple[str, str]:
    return Case.objects.get(pk=case.pk).status, Step.objects.get(pk=case.step_id).status


OPEN = (CaseStatus.OPEN, StepStatus.UNCERTAIN)
CONFIRMED = (CaseStatus.DECIDED, StepStatus.COMMITTED)


def test_without_a_policy_that_says_otherwise_one_person_is_enough() -> None:
    case, person = asked()
    assert isinstance(answer(case, person()), Decision)
    assert status(case) == CONFIRMED


def test_the_first_answer_changes_nothing_and_the_second_carries_it_out() -> None:
    people_needed(confirm={"needed": 2})
    case, person = asked()
    before = Step.objects.get()
    first = answer(case, person("ada"), operation_id="op_7")
    assert isinstance(first, Signature)
    assert (status(case), Step.objects.get().version, Step.objects.get().fence) == (OPEN, before.version, before.fence)
    assert signatures.still_needed(first) == "Recorded as 1 of 2; it waits for another person who answers “confirm”."
    second = answer(case, person("grace"))
    assert isinstance(second, Decision)
    assert (second.person_name, second.operation_id) == ("grace", "op_7"), "what the first person found is not lost"
    assert status(case) == CONFIRMED
    assert [entry.actor for entry in entries(case, "sign")] == ["ada"]
    assert '"signed_by":["ada"]' in entries(case, "decide")[0].text
    assert Evidence.objects.filter(kind="attestation").count() == 1
    assert list(audit.broken_links()) == []


def test_one_person_is_one_person_however_often_they_press() -> None:
    people_needed(confirm={"needed": 2}, retry={})
    case, person = asked()
    ada = person("ada")
    assert answer(case, ada) == answer(case, ada)
    assert len(entries(case, "sign")) == 1
    assert status(case) == OPEN
    with pytest.raises(AlreadySigned, match="You answered “confirm”"):
        answer(case, ada, RETRY)
    answer(case, person("grace"))
    assert answer(case, ada) == Signature.objects.get(), "also once it is decided"
    with pytest.raises(CaseClosed, match="grace already decided “confirm”"):
        answer(case, ada, RETRY)


def test_another_answer_by_another_person_is_a_signature_for_that_answer() -> None:
    people_needed(confirm={"needed": 2}, retry={"needed": 2}, abandon={"needed": 1})
    case, person = asked()
    answer(case, person("ada"), CONFIRM)
    answer(case, person("grace"), RETRY)
    assert status(case) == OPEN
    answer(case, person("joan"), RETRY)
    assert status(case) == (CaseStatus.DECIDED, StepStatus.FAILED)
    assert [signature.kind for signature in Signature.objects.all()] == ["confirm", "retry"]


def test_an_answer_that_needs_one_person_is_carried_out_over_the_signatures_for_others() -> None:
    people_needed(confirm={"needed": 2}, abandon={"needed": 1})
    case, person = asked()
    answer(case, person("ada"), CONFIRM)
    answer(case, person("grace"), ABANDON)
    assert status(case) == (CaseStatus.DECIDED, StepStatus.ABANDONED)


def test_only_people_of_the_groups_that_the_policy_names_count() -> None:
    people_needed(retry={"needed": 2, "groups": ["Approver"]}, confirm={})
    case, person = asked()
    with pytest.raises(Forbidden, match="The policy wants somebody of Approver"):
        answer(case, person("opal", "Operator"), RETRY)
    ada = person("ada", "Approver")
    answer(case, ada, RETRY)
    ada.groups.set([])
    ada.user_permissions.set([])
    answer(case, person("grace", "Approver"), RETRY)
    assert status(case) == OPEN, "who lost the right does not count any more (S25)"
    answer(case, person("joan", "Approver"), RETRY)
    assert status(case)[0] == CaseStatus.DECIDED


def test_s25_a_disabled_account_does_not_count() -> None:
    people_needed(confirm={"needed": 2})
    case, person = asked()
    ada = person("ada")
    answer(case, ada)
    User.objects.filter(pk=ada.pk).update(is_active=False)
    answer(case, person("grace"))
    assert status(case) == OPEN


def test_an_answer_that_the_policy_leaves_out_is_not_allowed() -> None:
    people_needed(confirm={})
    case, person = asked()
    with pytest.raises(DecisionNotAllowed, match="lets this be answered with confirm; not with retry"):
        answer(case, person(), RETRY)
    assert status(case) == OPEN


def test_the_policy_in_force_when_one_answers_counts_and_not_the_one_planned_under() -> None:
    case, person = asked()
    people_needed(confirm={"needed": 2})
    answer(case, person("ada"))
    people_needed(confirm={"needed": 1})
    assert Workflow.objects.get().policy_version != PolicyVersion.objects.latest("number")
    assert isinstance(answer(case, person("grace")), Decision)


def test_a_policy_that_cannot_be_read_lets_nobody_decide() -> None:
    case, person = asked()
    put_in_force({"rules": [{"name": "broken", "set": {"decisions": {"outcome_unknown": {"explode": {}}}}}]})
    with pytest.raises(DecisionNotAllowed, match="cannot be read"):
        answer(case, person())
    assert status(case) == OPEN


def test_what_was_signed_before_the_step_moved_counts_no_more_and_its_person_may_sign_again() -> None:
    people_needed(confirm={"needed": 2})
    case, person = asked()
    ada = person("ada")
    answer(case, ada)
    step = Step.objects.get()
    Step.objects.filter(pk=step.pk).update(version=step.version + 1)
    with pytest.raises(StaleView):
        answer(case, person("grace"), step_version=step.version)
    answer(case, User.objects.get(username="grace"))
    assert status(case) == OPEN
    answer(case, ada)
    assert status(case) == CONFIRMED


def test_s19_of_fifty_people_who_press_at_once_the_answer_is_carried_out_once() -> None:
    people_needed(confirm={"needed": 2})
    case, person = asked()
    outcomes = at_once(*[partial(answer, case, person(f"person{number}")) for number in range(50)])
    (decision,) = [outcome for outcome in outcomes if isinstance(outcome, Decision)]
    (signature,) = [outcome for outcome in outcomes if isinstance(outcome, Signature)]
    assert decision.person_name != signature.person_name
    refused = raised(outcomes)
    assert len(refused) == 48
    assert {type(refusal) for refusal in refused} <= {CaseClosed, StaleView}
    assert status(case) == CONFIRMED
    assert Evidence.objects.filter(kind="attestation").count() == 1
    assert len(entries(case, "decide")) == len(entries(case, "sign")) == 1


def test_what_is_written_alongside_a_signature_is_in_its_transaction() -> None:
    people_needed(confirm={"needed": 2})
    case, person = asked()
    ada, seen = person("ada"), list[Answered]()

    def fail(answered: Answered) -> None:
        raise RuntimeError("undone")

    with pytest.raises(RuntimeError):
        answer(case, ada, alongside=fail)
    assert not Signature.objects.exists()
    for _ in range(2):
        answer(case, ada, alongside=seen.append)
    assert seen == [Signature.objects.get()]
