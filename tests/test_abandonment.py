"""Winding a workflow down: nothing new starts, what is in the air is settled, what did happen stays listed."""

from __future__ import annotations

from functools import partial
from typing import Any
from uuid import uuid4

import pytest
from django.contrib.auth.models import User

from checkpoint import audit, workflows
from checkpoint.errors import ActionIncomplete, AlreadyEnding, Forbidden, NotFound
from checkpoint.explaining import endings
from checkpoint.models import AuditEntry, Step, Workflow
from checkpoint.outcomes import OutcomeUnknown, Receipt, Visible
from checkpoint.people import Actor
from checkpoint.states import Decision as DecisionKind
from checkpoint.states import StepStatus, WorkflowStatus
from tests import factories
from tests.case_driver import at_once, command, raised
from tests.console_driver import HTMX, Forms, signed_in
from tests.journal_driver import KEYED, OPAQUE, VERIFIABLE, JournalDriver, answer, case, effect, step, submit
from tests.time_driver import MovableTime

pytestmark = pytest.mark.usefixtures("database")


def admin(name: str = "root") -> User:
    return factories.person(name, groups=["Admin"])


def abandon(workflow: Workflow, person: User, reason: str = "The order was cancelled.") -> Workflow:
    actor = Actor(person.username, "command")
    return workflows.abandon(workflow_id=workflow.pk, actor=actor, user=person, reason=reason)


def statuses(workflow: Workflow) -> list[str]:
    return list(Step.objects.filter(workflow=workflow).order_by("position").values_list("status", flat=True))


def test_what_has_not_run_ends_at_once_and_what_did_happen_stays() -> None:
    workflow, driver = submit(OPAQUE, effect("first"), effect("second", cents=2)), JournalDriver()
    (claim,) = driver.turn()
    (second,) = driver.report(claim, Receipt(operation_id="op_1"))
    driver.report(second, OutcomeUnknown("cut"))
    answer(case(workflow), DecisionKind.RETRY)
    ended = abandon(workflow, admin())
    assert ended.status == WorkflowStatus.ABANDONED
    assert statuses(workflow) == [StepStatus.VERIFIED, StepStatus.ABANDONED]
    assert step(workflow, "first").operation_id == "op_1"
    assert driver.turn() == []
    (entry,) = AuditEntry.objects.filter(stream_id=workflow.pk, verb="wind_down")
    assert (entry.actor, "The order was cancelled." in entry.text) == ("root", True)
    assert list(audit.broken_links()) == []


def test_a_call_on_its_way_is_awaited_and_verified_and_nothing_follows_it() -> None:
    workflow, driver = submit(VERIFIABLE, effect("first"), effect("second", cents=2)), JournalDriver()
    claim = driver.claim()
    assert abandon(workflow, admin()).status == WorkflowStatus.EXECUTING
    (reading,) = driver.report(claim, Receipt(operation_id="op_1"))
    assert statuses(workflow) == [StepStatus.COMMITTED, StepStatus.ABANDONED]
    assert driver.report(reading, Visible({})) == []
    workflow.refresh_from_db()
    assert (workflow.status, statuses(workflow)[0]) == (WorkflowStatus.ABANDONED, StepStatus.VERIFIED)


def test_what_nobody_knows_is_still_asked_and_its_answer_ends_the_workflow() -> None:
    workflow, driver = submit(OPAQUE), JournalDriver()
    driver.report(driver.claim(), OutcomeUnknown("cut"))
    assert abandon(workflow, admin()).status == WorkflowStatus.NEEDS_REVIEW
    answer(case(workflow), DecisionKind.RETRY)
    workflow.refresh_from_db()
    assert (workflow.status, statuses(workflow)) == (WorkflowStatus.ABANDONED, [StepStatus.ABANDONED])
    assert driver.turn() == [], "it did not happen, and is not sent again"


def test_a_keyed_call_of_unknown_outcome_is_sent_again_so_that_the_workflow_can_end(
    time_machine: MovableTime,
) -> None:
    """Nothing new starts, but what may have taken effect is settled: with the same key, the only way there is."""
    workflow, driver = submit(KEYED, effect("first"), effect("second", cents=2)), JournalDriver()
    claim = driver.claim()
    driver.report(claim, OutcomeUnknown("cut"))
    abandon(workflow, admin())
    time_machine.pass_seconds(120)
    again = driver.claim()
    assert again.idempotency_key == claim.idempotency_key
    assert driver.report(again, Receipt(operation_id="op_1")) == []
    workflow.refresh_from_db()
    assert workflow.status == WorkflowStatus.ABANDONED
    assert statuses(workflow) == [StepStatus.VERIFIED, StepStatus.ABANDONED]


def test_the_preview_says_exactly_what_will_end_and_what_is_in_the_air() -> None:
    workflow = factories.workflow()
    made = {status: factories.step(workflow, status, name=status.value) for status in StepStatus}
    factories.case(made[StepStatus.UNCERTAIN])
    foreseen = endings.of(workflow)
    names = {
        sort: [row.name for row in getattr(foreseen, sort).rows] for sort in ("ending", "in_the_air", "stay")
    }  # fmt: skip
    assert names == {
        "ending": ["planned", "prepared", "failed"],
        "in_the_air": ["started", "committed", "uncertain"],
        "stay": ["verified"],
    }
    assert not foreseen.at_once
    abandon(workflow, admin())
    now = dict(Step.objects.values_list("name", "status"))
    for name in names["ending"]:
        assert now[name] == StepStatus.ABANDONED
    for name in (*names["in_the_air"], *names["stay"]):
        assert now[name] == name


def test_who_submitted_a_workflow_or_administers_it_winds_it_down_and_nobody_else() -> None:
    submitter = factories.person("ann", groups=["Agent"], teams=[factories.team()])
    approver = factories.person("bob", groups=["Approver"], teams=[factories.team()])
    stranger = factories.person("eve", groups=["Approver"], teams=[factories.team("Legal")])
    workflow = factories.workflow(submitted_by=submitter)
    factories.step(workflow)
    with pytest.raises(Forbidden, match="only who submitted a workflow, or an administrator"):
        abandon(workflow, approver)
    with pytest.raises(NotFound):
        abandon(workflow, stranger)
    assert abandon(workflow, submitter).status == WorkflowStatus.ABANDONED


def test_s25_a_right_that_was_taken_away_counts_at_once() -> None:
    workflow = factories.workflow()
    factories.step(workflow)
    person = admin()
    assert person.has_perm("checkpoint.administer_workflow")
    person.groups.clear()
    with pytest.raises(NotFound):
        abandon(workflow, person)
    User.objects.filter(pk=person.pk).update(is_active=False)
    with pytest.raises(NotFound):
        abandon(workflow, person)


def test_the_machines_operator_needs_no_account_and_is_told_what_does_not_exist() -> None:
    workflow = factories.workflow()
    factories.step(workflow)
    operator = Actor("daemon", "command")
    with pytest.raises(NotFound):
        workflows.abandon(workflow_id=uuid4(), actor=operator, reason="x")
    assert workflows.abandon(workflow_id=workflow.pk, actor=operator, reason="x").status == WorkflowStatus.ABANDONED


def test_the_same_press_again_changes_nothing_and_another_persons_is_told_who_began() -> None:
    workflow = factories.workflow()
    factories.step(workflow, StepStatus.STARTED)
    person = admin()
    assert abandon(workflow, person).version == abandon(workflow, person).version
    with pytest.raises(AlreadyEnding, match="being wound down; root began it"):
        abandon(workflow, admin("other"))


@pytest.mark.parametrize("reason", ["", "  ", "x" * 4001, "a\0b"])
def test_it_takes_a_reason(reason: str) -> None:
    with pytest.raises(ActionIncomplete, match=r"^reason: "):
        abandon(factories.workflow(), admin(), reason)


def test_a_completed_workflow_stays_completed() -> None:
    workflow, driver = submit(OPAQUE), JournalDriver()
    driver.report(driver.claim(), Receipt())
    with pytest.raises(AlreadyEnding, match="The workflow is completed"):
        abandon(workflow, admin())


def test_of_two_who_press_at_once_one_winds_it_down() -> None:
    workflow = factories.workflow()
    factories.step(workflow, StepStatus.STARTED)
    people: list[Any] = [admin(name) for name in ("root", "ruth", "rita")]
    outcomes = at_once(*[partial(abandon, workflow, person) for person in people])
    assert [type(refusal) for refusal in raised(outcomes)] == [AlreadyEnding] * 2
    assert AuditEntry.objects.filter(stream_id=workflow.pk, verb="wind_down").count() == 1


def page_of(workflow: Workflow) -> str:
    return f"/workflows/{workflow.pk}/abandonment/"


def test_the_page_shows_what_would_end_and_does_it() -> None:
    workflow = factories.workflow()
    factories.step(workflow, StepStatus.VERIFIED, name="open_ticket")
    factories.step(workflow, StepStatus.STARTED, name="charge_card")
    factories.step(workflow, StepStatus.PREPARED, name="mail_customer")
    client = signed_in(admin())
    assert page_of(workflow) in client.get(f"/workflows/{workflow.pk}/").text
    shown = client.get(page_of(workflow))
    for words in ("Ends without running", "mail_customer", "A call is on its way", "Took effect and stays", "op_5512"):
        assert words in shown.text, words
    fragment = client.get(page_of(workflow), headers=HTMX)
    assert "<html" not in fragment.text
    assert "mail_customer" in fragment.text
    done = press_down(client, workflow, "The order was cancelled.")
    assert done["Location"] == f"/workflows/{workflow.pk}/"
    assert "winding down" in client.get(done["Location"]).text
    again = client.get(page_of(workflow))
    assert "being wound down already" in again.text
    assert "Wind it down</button>" not in again.text


def press_down(client: Any, workflow: Workflow, reason: str) -> Any:
    (found,) = [form for form in Forms(client.get(page_of(workflow)).text).forms if "abandonment" in form["action"]]
    return client.post(found["action"], {**found["fields"], "reason": reason})


def test_the_page_keeps_what_was_typed_and_says_who_was_first() -> None:
    workflow = factories.workflow()
    factories.step(workflow, StepStatus.STARTED)
    client = signed_in(admin())
    refused = press_down(client, workflow, " ")
    assert (refused.status_code, "Say in at most 4000 characters why" in refused.text) == (422, True)
    (form,) = [form for form in Forms(client.get(page_of(workflow)).text).forms if "abandonment" in form["action"]]
    abandon(workflow, admin("ruth"))
    late = client.post(form["action"], {**form["fields"], "reason": "My own words."})
    assert (late.status_code, "ruth began it" in late.text, "My own words." in late.text) == (409, True, True)


def test_who_may_not_wind_it_down_is_not_led_there_and_refused() -> None:
    workflow = factories.workflow()
    factories.step(workflow)
    person = factories.person("bob", groups=["Approver"], teams=[workflow.team])
    client = signed_in(person)
    page = client.get(f"/workflows/{workflow.pk}/")
    assert "abandonment" not in page.text
    assert client.get(page_of(workflow)).status_code == 403
    token = str(client.get("/review/").context["csrf_token"])
    sent = {"csrfmiddlewaretoken": token, "reason": "x"}
    assert client.post(page_of(workflow), sent).status_code == 403
    assert AuditEntry.objects.filter(actor="bob", verb="deny").count() == 1
    stranger = signed_in(factories.person("eve", teams=[factories.team("Legal")]))
    assert stranger.get(page_of(workflow)).status_code == 404
    workflow.refresh_from_db()
    assert not workflow.winding_down


def test_the_command_shows_what_would_end_and_does_it() -> None:
    workflow = factories.workflow()
    factories.step(workflow, StepStatus.VERIFIED, name="open_ticket")
    factories.step(workflow, StepStatus.PREPARED, name="mail_customer")
    code, shown = command("abandon", workflow.pk, "--reason", "cancelled", "--no-input")
    assert code == 0
    for words in ("ends without running: 1", "mail_customer", "open_ticket: verified op_5512", "It has ended."):
        assert words in shown, words


def test_the_command_acts_with_the_rights_of_whom_it_names() -> None:
    workflow = factories.workflow()
    factories.step(workflow, StepStatus.STARTED)
    factories.person("bob", groups=["Approver"], teams=[workflow.team])
    admin()
    words = ("abandon", str(workflow.pk)[-8:], "--reason", "cancelled", "--no-input", "--as")
    assert command(*words, "bob")[0] == 1
    assert "It is being wound down" in command(*words, "root")[1]
    assert command(*words, "root")[0] == 0
    admin("ruth")
    assert command(*words, "ruth")[0] == 3


def test_a_question_of_a_workflow_that_is_wound_down_says_that_nothing_is_sent_any_more() -> None:
    workflow = factories.workflow()
    asked = factories.case(factories.step(workflow, StepStatus.UNCERTAIN))
    factories.step(workflow)
    client = signed_in(factories.person("ada", groups=["Approver"], teams=[workflow.team]))
    assert "again with the same key" in client.get(f"/cases/{asked.pk}/").text
    abandon(workflow, admin())
    page = client.get(f"/cases/{asked.pk}/").text
    assert "again with the same key" not in page
    assert "Nothing is sent: the workflow is being wound down." in page
    assert "it will happen twice" not in page
