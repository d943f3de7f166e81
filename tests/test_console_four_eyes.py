"""Four eyes on the case page: one of two is visible, and nobody is offered what would be refused (S31)."""

from __future__ import annotations

import pytest

from approvals.models import Signature
from checkpoint.models import Step
from checkpoint.states import StepStatus
from tests import factories
from tests.case_driver import put_in_force, worker
from tests.console_driver import answer, answers, signed_in

pytestmark = pytest.mark.usefixtures("database")


FOUR_EYES = {
    "rules": [{
        "name": "four eyes",
        "set": {"decisions": {"outcome_unknown": {"confirm": {"needed": 2}, "retry": {"groups": ["Approver"]}}}},
    }]
}  # fmt: skip


@pytest.mark.parametrize("htmx", [False, True], ids=["plain", "htmx"])
def test_s31_one_of_two_is_visible_and_the_first_persons_button_is_gone(htmx: bool) -> None:
    put_in_force(FOUR_EYES)
    case = factories.case()
    ada, joan = signed_in(worker(case)), signed_in(worker(case, "joan"))
    assert "Needs 2 people" in ada.get(f"/cases/{case.pk}/").text
    signed = answer(ada, case, "confirm", reason="It is on the statement.", htmx=htmx)
    page = signed if htmx else ada.get(signed["Location"])
    assert answers(page) == {}
    assert "You answered “confirm”" in page.text
    other = joan.get(f"/cases/{case.pk}/")
    assert "<strong>1 of 2</strong>" in other.text
    assert "It is on the statement." in other.text
    assert set(answers(other)) == {"confirm", "retry"}
    answer(joan, case, "confirm", reason="So it is.")
    decided = joan.get(f"/cases/{case.pk}/").text
    assert "joan</bdi> answered: confirm" in decided
    assert "Before, <bdi>ada</bdi> answered confirm" in decided
    assert Step.objects.get().status == StepStatus.COMMITTED


def test_s31_an_answer_that_the_policy_keeps_for_others_has_no_button_and_says_so() -> None:
    put_in_force(FOUR_EYES)
    case = factories.case()
    operator = signed_in(worker(case, "opal", "Operator"))
    page = operator.get(f"/cases/{case.pk}/")
    assert set(answers(page)) == {"confirm"}
    assert "The policy wants somebody of Approver for this" in page.text
    confirm = answers(page)["confirm"]
    refused = operator.post(confirm["action"], {**confirm["fields"], "kind": "retry", "reason": "I try."})
    assert (refused.status_code, Signature.objects.exists()) == (403, False)


def test_an_unreadable_policy_offers_no_answer_and_says_why() -> None:
    put_in_force({"rules": [{"name": "broken", "set": {"decisions": {"outcome_unknown": {"explode": {}}}}}]})
    case = factories.case()
    page = signed_in(worker(case)).get(f"/cases/{case.pk}/")
    assert answers(page) == {}
    assert "cannot be read" in page.text
