"""The same person answers again: with the same words it is the same answer, with others it says which words stand."""

from __future__ import annotations

from typing import Any

import pytest

from approvals.models import Comment, Decision, Signature
from checkpoint.errors import AlreadyAnswered
from checkpoint.models import Case
from tests import bulk_driver, factories
from tests.approval_driver import answer as answer_request
from tests.approval_driver import approver, pending, requested
from tests.case_driver import command, put_in_force, worker
from tests.console_driver import answers, signed_in

pytestmark = pytest.mark.usefixtures("database")

TWO = {"rules": [{"name": "two", "set": {"decisions": {"outcome_unknown": {"confirm": {"needed": 2}}}}}]}


def send(client: Any, case: Case, form: dict[str, Any], reason: str) -> Any:
    return client.post(f"/cases/{case.pk}/decision/", {**form["fields"], "kind": "confirm", "reason": reason})


@pytest.mark.parametrize("four_eyes", [False, True], ids=["decided", "signed"])
def test_s18_other_words_are_not_dropped_in_silence(four_eyes: bool) -> None:
    if four_eyes:
        put_in_force(TWO)
    case = factories.case()
    client = signed_in(worker(case))
    form = answers(client.get(f"/cases/{case.pk}/"))["confirm"]
    assert send(client, case, form, "It is on the statement.").status_code == 302
    assert send(client, case, form, "It is on the statement.").status_code == 302
    again = send(client, case, form, "The bank called me.")
    assert again.status_code == 409
    assert "It is on the statement. That stands, and what you wrote now was not recorded" in again.text
    assert "The bank called me." in again.text
    kept = Signature.objects.get() if four_eyes else Decision.objects.get()
    assert kept.reason == "It is on the statement."
    assert not Comment.objects.exists()


def test_s18_also_on_the_command_line() -> None:
    case = factories.case()
    words = ("decide", case.pk, "confirm", "--as", worker(case).username, "--reason")
    assert [command(*words, "I looked.")[0] for _ in range(2)] == [0, 0]
    code, said = command(*words, "I looked once more.")
    assert (code, "I looked. That stands" in said) == (3, True)


def test_s18_also_for_a_request_for_approval() -> None:
    workflow, _ = requested(needed=2)
    request, ann = pending(workflow), approver()
    first = answer_request(request, ann)
    assert answer_request(request, ann) == first
    with pytest.raises(AlreadyAnswered, match="looks right That stands"):
        answer_request(request, ann, reason="looks wrong")


def test_after_a_case_the_next_question_may_be_a_request_for_approval() -> None:
    case = factories.case()
    ada = worker(case)
    request = bulk_driver.approval()
    client = signed_in(ada)
    form = answers(client.get(f"/cases/{case.pk}/"))["confirm"]
    send(client, case, form, "I looked.")
    page = client.get(f"/cases/{case.pk}/").text
    assert f'<a href="/approvals/{request.pk}/">Next open question</a>' in page
