"""`manage.py case`, and what `manage.py decide` says of four eyes and of what happened next (S16, S30)."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from approvals.casework import assignments, snoozes
from approvals.models import Attachment, Comment, Escalation, Signature
from checkpoint.contracts import Contract, RecoveryClass
from checkpoint.models import AuditEntry, Case
from checkpoint.outcomes import Outcome, OutcomeUnknown, Visible
from checkpoint.short_ids import short
from checkpoint.states import CaseStatus
from tests import factories
from tests.case_driver import command, put_in_force, stranger, worker
from tests.journal_driver import OPAQUE, JournalDriver, case, contract, submit
from tests.time_driver import MovableTime

pytestmark = pytest.mark.usefixtures("database")


@pytest.fixture(autouse=True)
def storage(settings: Any, tmp_path: Path) -> Path:
    """Where the bytes are."""
    settings.MEDIA_ROOT = tmp_path / "artifacts"
    return tmp_path


def workers(asked: Case) -> None:
    """Two people who may decide."""
    for name in ("ada", "grace"):
        worker(asked, name)


def act(asked: Case, *words: Any, person: str = "ada") -> tuple[int, str]:
    return command("case", short(asked.pk), "--as", person, *words)


def test_a_case_is_claimed_released_and_given_away() -> None:
    asked = factories.case()
    workers(asked)
    assert act(asked, "claim") == (0, "ada has this case; others still may decide it.\n")
    code, refusal = act(asked, "claim", person="grace")
    assert (code, "ada has this case since" in refusal) == (3, True)
    assert act(asked, "release", person="grace")[0] == 1
    assert act(asked, "assign", "grace", "--reason", "She knows the bank.")[0] == 0
    held = assignments.current(asked)
    assert held is not None
    assert (held.person_name, held.assigned_by_name, held.channel) == ("grace", "ada", "command")
    assert act(asked, "release", person="grace")[0] == 0
    assert "who has it: nobody" in act(asked, "show")[1]


def test_a_case_is_snoozed_and_woken() -> None:
    asked = factories.case()
    workers(asked)
    assert "Put aside until" in act(asked, "snooze", "--hours", "1.5", "--reason", "The bank answers tomorrow.")[1]
    assert "snoozed by ada" in act(asked, "show")[1]
    assert act(asked, "snooze", "--hours", "2", "--reason", "x", person="grace")[0] == 3
    assert act(asked, "wake", person="grace")[0] == 0
    assert snoozes.current(asked) is None
    for hours in ("0", "-1", "1e300", "999"):
        code, refusal = act(asked, "snooze", f"--hours={hours}", "--reason", "x")
        assert (code, "a snooze ends" in refusal) == (1, True), hours


def test_words_files_and_escalation() -> None:
    asked = factories.case()
    worker(asked)
    assert act(asked, "comment", "The bank\nanswers\x1b[2J on Monday.")[0] == 0
    assert Comment.objects.get().channel == "command"
    assert act(asked, "escalate", "--reason", "The customer waits.")[0] == 0
    assert Escalation.objects.get().person_name == "ada"
    shown = act(asked, "show")[1]
    assert "The bank answers<U+001B>[2J on Monday." in shown
    assert "escalated by ada: The customer waits." in shown


def test_a_file_is_kept_as_evidence(storage: Path) -> None:
    asked = factories.case()
    worker(asked)
    file = storage / "statement.pdf"
    file.write_bytes(b"x" * 100_000)
    assert "Kept as evidence: statement.pdf" in act(asked, "attach", file, "--reason", "Monday's statement.")[1]
    kept = Attachment.objects.get().artifact
    assert (kept.size, kept.media_type) == (100_000, "application/pdf")
    assert kept.sha256 in act(asked, "show")[1]
    code, refusal = act(asked, "attach", storage / "missing.pdf", "--reason", "x")
    assert (code, "cannot be read" in refusal) == (1, True)


def test_another_teams_case_is_not_found_and_the_attempt_is_on_record() -> None:
    asked = factories.case()
    stranger("eve")
    code, refusal = act(asked, "claim", person="eve")
    assert (code, "There is no case" in refusal) == (1, True)
    assert AuditEntry.objects.filter(actor="eve", verb="deny").count() == 1


def test_cases_like_it_are_named_with_what_was_answered() -> None:
    asked, other = factories.case(), factories.case()
    worker(asked)
    decide(other, "abandon", reason="The customer paid otherwise.")
    shown = act(asked, "show")[1]
    assert f"like it: {short(other.pk)}: ada already decided “abandon”" in shown
    assert "The customer paid otherwise." in shown


def decide(asked: Case, kind: str, *words: str, person: str = "ada", reason: str = "I looked.") -> tuple[int, str]:
    return command("decide", asked.pk, kind, "--as", person, "--reason", reason, "--no-input", *words)


def test_deciding_somebody_elses_case_says_whose_it_is() -> None:
    asked = factories.case()
    workers(asked)
    act(asked, "claim", person="grace")
    code, shown = decide(asked, "abandon")
    assert (code, "grace has this case; it can be decided all the same" in shown) == (0, True)


def test_the_first_of_two_signs_and_is_told_what_it_waits_for() -> None:
    people = {"confirm": {"needed": 2}, "abandon": {}}
    put_in_force({"rules": [{"name": "two", "set": {"decisions": {"outcome_unknown": people}}}]})
    asked = factories.case()
    workers(asked)
    code, shown = decide(asked, "confirm", "--wait", "5")
    assert code == 0
    assert "confirm (It happened) by 2 people" in shown
    assert "Signed: confirm, by ada. Recorded as 1 of 2" in shown
    assert decide(asked, "retry")[0] == 3
    code, shown = decide(asked, "confirm", person="grace")
    assert "answered: confirm by ada" in shown
    assert "Decided: confirm, by grace." in shown
    code, shown = decide(asked, "confirm")
    assert (code, "Signed: confirm, by ada. grace already decided “confirm”" in shown) == (0, True)
    assert (Signature.objects.count(), Case.objects.get().status) == (1, CaseStatus.DECIDED)


READABLE = contract(RecoveryClass.OPAQUE, can_verify=True)


def unanswered(promises: Contract) -> tuple[Case, JournalDriver]:
    """A case about a call whose answer was lost."""
    workflow, driver = submit(promises), JournalDriver()
    driver.report(driver.claim(), OutcomeUnknown("cut"))
    asked = case(workflow)
    worker(asked)
    return asked, driver


def meanwhile(monkeypatch: pytest.MonkeyPatch, driver: JournalDriver, outcome: Outcome) -> None:
    """While the command sleeps, the worker makes the next call: what is seen does not depend on who is faster."""

    def make_next_call(seconds: float) -> None:
        for claim in driver.turn():
            driver.report(claim, outcome)

    monkeypatch.setattr(time, "sleep", make_next_call)


def test_s30_with_wait_the_command_follows_the_step_up_to_verified(monkeypatch: pytest.MonkeyPatch) -> None:
    asked, driver = unanswered(READABLE)
    meanwhile(monkeypatch, driver, Visible({}))
    code, shown = decide(asked, "confirm", "--wait", "30")
    assert code == 0, shown
    assert shown.strip().splitlines()[-2:] == ["step effect: committed (attested)", "step effect: verified"]


def test_with_wait_the_command_says_that_people_are_asked_again(
    monkeypatch: pytest.MonkeyPatch, time_machine: MovableTime
) -> None:
    asked, driver = unanswered(OPAQUE)
    time_machine.pass_seconds(3600)  # the first call can no longer land
    meanwhile(monkeypatch, driver, OutcomeUnknown("cut again"))
    code, shown = decide(asked, "retry", "--wait", "30")
    assert (code, "People are asked again about this step" in shown) == (4, True), shown
    assert Case.objects.filter(status=CaseStatus.OPEN).count() == 1


def test_with_wait_the_command_ends_when_its_time_is_over() -> None:
    asked, _ = unanswered(READABLE)
    code, shown = decide(asked, "confirm", "--wait", "0")
    assert (code, "its outcome is being read back" in shown) == (6, True), shown


def test_with_wait_an_answer_that_ends_the_step_ends_the_wait() -> None:
    asked, _ = unanswered(OPAQUE)
    assert decide(asked, "abandon", "--wait")[0] == 0
