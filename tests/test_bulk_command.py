"""`manage.py bulk`: prepares, starts, reports and aborts, with the rights of the person that it names."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from django.db import connection

from approvals.bulk import work
from approvals.models import BulkJob, Decision
from checkpoint.short_ids import short
from tests import factories
from tests.bulk_driver import REASON, approval, cases, decider, results, run
from tests.test_commands import Ended
from tests.test_commands import run as command

pytestmark = pytest.mark.usefixtures("database")


def bulk(*words: str, user: str = "ada") -> Ended:
    return command("bulk", *words, "--as", user)


def only() -> BulkJob:
    return BulkJob.objects.get()


def test_from_preparing_to_done() -> None:
    one, two = cases(2)
    ada = decider()
    made = bulk("create", "retry", "--case", str(one.pk), short(two.pk), "--reason", REASON)
    assert made.code == 0
    for shown in (
        "retry 2 cases", "card.charge@1 (irreversible): 2, of which 2 will be answered", "Sends 2 steps again",
        "it will happen twice", f"manage.py bulk start {short(only().pk)}",
    ):  # fmt: skip
        assert shown in made.out, shown
    assert not Decision.objects.exists()
    assert bulk("start", short(only().pk)).code == 0
    run(only())
    assert only().channel == "command"
    assert {decision.person for decision in Decision.objects.all()} == {ada}
    status = bulk("status", short(only().pk))
    assert "retry, done. 2 items: 0 pending, 2 done, 0 refused, 0 moved" in status.out


def test_all_that_match_with_the_cap_and_its_reason(settings: Any) -> None:
    settings.CHECKPOINT_BULK_CAP = 2
    cases(3)
    decider()
    made = bulk("create", "retry", "--all", "--team", "billing", "--question", "outcome_unknown", "--reason", REASON)
    assert "3 match. One job takes at most 2, so that a mistake stays small" in made.out
    assert only().filter == {"shown": "waiting", "team": "billing", "reason": "outcome_unknown"}


def test_what_will_be_refused_is_said_before_and_after() -> None:
    things = [approval(), approval(factories.step(factories.workflow()))]
    decider()
    made = bulk("create", "approve", "--approval", *(str(one.pk) for one in things), "--reason", REASON)
    assert "1 will not be answered: Its effect cannot be undone" in made.out
    bulk("start", short(only().pk))
    run(only())
    said = bulk("status", short(only().pk)).out
    assert f"1 refused, approval {things[1].pk}: Its effect cannot be undone" in said


def test_waiting_follows_the_job_to_its_end() -> None:
    ada, things = decider(), cases(2)
    bulk("create", "retry", "--case", *(str(one.pk) for one in things), "--reason", REASON)

    def worker() -> None:
        while not work.work(seconds=60):
            pass
        connection.close()

    thread = threading.Thread(target=worker)
    thread.start()
    ended = bulk("start", short(only().pk), "--wait")
    thread.join()
    assert (ended.code, results(only())) == (0, ["done", "done"])
    bulk("create", "retry", "--case", *(str(one.pk) for one in things), "--reason", REASON)
    again = BulkJob.objects.latest("id")
    bulk("start", short(again.pk))
    run(again)
    assert bulk("status", short(again.pk), "--wait").code == 0
    assert ada.bulk_jobs.count() == 2


def test_aborting() -> None:
    decider()
    bulk("create", "retry", "--case", str(cases(1)[0].pk), "--reason", REASON)
    aborted = bulk("abort", short(only().pk))
    assert (aborted.code, "retry, aborted. 1 item: 1 pending" in aborted.out) == (0, True)
    late = bulk("start", short(only().pk))
    assert (late.code, "aborted by ada" in late.err) == (3, True)


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("create", "retry", "--all", "--reason", " "), 2, "reason: say in"),
        (("create", "retry", "--all", "--tool", "no.such", "--reason", "x"), 2, "selection: there are no cases"),
        (("create", "retry", "--case", "12345678", "--reason", "x"), 1, "There is no case 12345678"),
        (("start", "12345678"), 1, "There is no bulk job 12345678"),
    ],
)
def test_refusals_are_one_line_and_a_code(words: tuple[str, ...], code: int, said: str) -> None:
    decider()
    ended = bulk(*words)
    assert (ended.code, said in ended.err) == (code, True), ended
    assert not BulkJob.objects.exists()


def test_the_command_has_the_rights_of_whom_it_names() -> None:
    case = cases(1)[0]
    decider("eve", teams=[factories.team("Legal")])
    factories.person("olaf", groups=["Auditor"])
    assert "There is no case" in bulk("create", "retry", "--case", str(case.pk), "--reason", "x", user="eve").err
    assert "may not answer cases" in bulk("create", "retry", "--case", str(case.pk), "--reason", "x", user="olaf").err
