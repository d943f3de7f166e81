"""The inbox keeps still under its reader's eyes; words find questions; a view has a name and an address."""

from __future__ import annotations

from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
from django.contrib.auth.models import User
from django.test import Client

from approvals.decisions import decide
from approvals.inbox import question_list, reading, saved_views
from approvals.inbox.narrowing import Narrowed
from approvals.inbox.review_queue import Shown
from approvals.models import SavedView
from checkpoint import clock
from checkpoint.errors import ActionIncomplete, TooMany
from checkpoint.models import Case
from checkpoint.states import Decision, StepStatus
from tests import factories
from tests.approval_driver import answer, approver, pending, requested
from tests.case_driver import worker
from tests.console_driver import HTMX, Forms, signed_in

pytestmark = pytest.mark.usefixtures("database")


def ada() -> User:
    return factories.person("ada", groups=["Approver"], teams=[factories.team()])


def asked(minutes_ago: int, **of_workflow: Any) -> Case:
    about = factories.step(factories.workflow(**of_workflow), StepStatus.UNCERTAIN)
    return factories.case(about, opened_at=clock.now() - timedelta(minutes=minutes_ago))


def ids(rows: Any) -> list[UUID]:
    return [question.about.pk for question in rows]


def answered(case: Case, by: User) -> None:
    decide(
        case_id=case.pk, kind=Decision.RETRY, person=by, channel="api", reason="Nothing at the bank.",
        step_version=case.step_version, arguments_hash=case.arguments_hash,
    )  # fmt: skip


def test_what_arrives_is_counted_and_what_is_answered_stays_and_says_by_whom() -> None:
    first, second = asked(20), asked(10)
    page = signed_in(ada()).get("/review/")
    in_view = page.context["found"].in_view
    assert in_view == f"{first.pk},{second.pk}"
    answered(first, worker(first, "grace"))
    newest, oldest = asked(1), asked(60)
    client = signed_in(User.objects.get(username="ada"))
    later = client.get("/review/", {"in_view": in_view}, headers=HTMX)
    assert ids(later.context["found"].rows) == [first.pk, second.pk]
    assert later.context["found"].arrived == 2
    assert "2 new: show them" in later.text
    assert "grace" in later.text
    assert "Nothing at the bank." in later.text
    assert f'name="case" value="{first.pk}"' not in later.text, "what is answered cannot be ticked"
    assert ids(client.get("/review/").context["found"].rows) == [oldest.pk, second.pk, newest.pk]


def test_what_moves_up_from_the_next_page_has_not_arrived(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("approvals.inbox.review_queue.PAGE_SIZE", 2)
    person = ada()
    cases = [asked(minutes) for minutes in (40, 30, 20, 10)]
    begun = reading.begin(question_list.questions(person))
    assert (ids(begun.rows), begun.was_full) == ([cases[0].pk, cases[1].pk], True)
    answered(cases[0], worker(cases[0], "grace"))
    in_view = ids(begun.rows)
    moved_up = reading.go_on(person, question_list.questions(person), in_view=in_view, was_full=True)
    assert (ids(moved_up.rows), moved_up.arrived) == (in_view, 0)
    asked(35)
    arrived = reading.go_on(person, question_list.questions(person), in_view=in_view, was_full=True)
    assert arrived.arrived == 1


def test_a_made_up_view_shows_nothing_that_one_may_not_see() -> None:
    secret = factories.case(factories.step(factories.workflow(team=factories.team("Legal")), StepStatus.UNCERTAIN))
    client = signed_in(ada())
    page = client.get("/review/", {"in_view": str(secret.pk)}, headers=HTMX)
    assert page.context["found"].rows == []
    assert client.get("/review/", {"in_view": "nonsense,,"}, headers=HTMX).status_code == 200


def test_a_request_that_is_answered_keeps_its_row() -> None:
    workflow, _ = requested()
    approval, client = pending(workflow), signed_in(approver("ada"))
    answer(approval, approver("grace"), reason="Dana asked for it.")
    later = client.get("/review/", {"in_view": str(approval.pk)}, headers=HTMX)
    assert ids(later.context["found"].rows) == [approval.pk]
    assert "grace" in later.text
    assert "Dana asked for it." in later.text


@pytest.mark.parametrize(
    ("search", "expected"),
    [("dana", 1), ("DANA order", 1), ("dana nobody", 0), ("order", 2), ("card.charge order", 2), ("%", 0), ("", 3)],
)
def test_every_word_must_be_said_somewhere(search: str, expected: int) -> None:
    person = ada()
    asked(3, goal="Take back the order of Dana")
    asked(2, goal="Refund an order")
    asked(1, goal="Send invoices")
    for shown, count in ((Shown.WAITING, expected), (Shown.DONE, 0)):
        narrowed = Narrowed(search=search)
        assert len(question_list.questions(person, shown=shown, narrowed=narrowed).rows) == count


def test_the_end_of_an_id_finds_a_question_and_what_was_closed() -> None:
    person, case, other = ada(), asked(2), asked(1)
    tail = Narrowed(search=f"…{str(case.pk)[-8:]}")
    assert ids(question_list.questions(person, narrowed=tail).rows) == [case.pk]
    answered(case, worker(case, "grace"))
    assert ids(question_list.questions(person, shown=Shown.DONE, narrowed=tail).rows) == [case.pk]
    of_workflow = Narrowed(search=str(other.workflow_id)[-12:])
    assert ids(question_list.questions(person, narrowed=of_workflow).rows) == [other.pk]


def keep(client: Client, address: str, name: str) -> Any:
    """Presses "Keep" on a page of the queue."""
    form = next(form for form in Forms(client.get(address).text).forms if form["action"] == "/review/views/")
    return client.post("/review/views/", {**form["fields"], "name": name})


def test_a_view_is_kept_under_a_name_and_is_an_address() -> None:
    client = signed_in(ada())
    kept = keep(client, "/review/?list=unassigned&search=dana&tool=card.charge", "cards of Dana")
    assert kept.headers["Location"] == "/review/?list=unassigned&search=dana&tool=card.charge"
    page = client.get(kept.headers["Location"])
    assert "cards of Dana" in page.text
    assert SavedView.objects.get().person.username == "ada"
    other = signed_in(factories.person("eve", groups=["Approver"]))
    assert "cards of Dana" not in other.get("/review/").text
    assert other.post(f"/review/views/{SavedView.objects.get().pk}/removal/").status_code == 403, "CSRF"
    removal = next(form for form in Forms(page.text).forms if form["action"].endswith("/removal/"))
    assert client.post(removal["action"], removal["fields"]).headers["Location"] == "/review/"
    assert not SavedView.objects.exists()


def test_the_name_of_a_view_is_checked_and_nobody_removes_anothers() -> None:
    person = ada()
    client = signed_in(person)
    refused = keep(client, "/review/?search=dana", "  ")
    assert refused.status_code == 422
    assert "give the view a name" in refused.text
    assert 'value="dana"' in refused.text
    view = saved_views.keep(person=person, name="mine", query="search=a")
    assert saved_views.keep(person=person, name="mine", query="search=b").pk == view.pk
    saved_views.remove(person=factories.person("eve"), view_id=view.pk)
    assert SavedView.objects.get().query == "search=b"
    with pytest.raises(ActionIncomplete):
        saved_views.keep(person=person, name="x" * 61, query="")
    for number in range(saved_views.MOST_VIEWS - 1):
        saved_views.keep(person=person, name=f"view {number}", query="search=a")
    with pytest.raises(TooMany):
        saved_views.keep(person=person, name="one more", query="search=a")
