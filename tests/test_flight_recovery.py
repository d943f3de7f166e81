"""What a dead worker's flight recorder settles, and what settles nothing: real processes, real locks, real SIGKILL."""

from __future__ import annotations

import os
import signal
import uuid
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
from pytest_django.fixtures import Settings

from checkpoint import leases
from checkpoint.explaining.questions import Cut
from checkpoint.models import Activity, AuditEntry, Case, Evidence, Workflow
from checkpoint.outcomes import ARTIFACT_MISMATCH, Receipt, Refused
from checkpoint.rows.attempt_log import WAIT_FOR_WORD
from checkpoint.states import CaseReason, CaseStatus, Decision, StepStatus
from checkpoint.turns.calls import Claim
from checkpoint.turns.flight_records import HOW, FlightRecord, Phase, hear
from tests.journal_driver import DEADLINE, OPAQUE, QUERYABLE, JournalDriver, answer, case, step, submit
from tests.time_driver import MovableTime
from workers import boot, flight_file, flight_recorder, flight_recovery
from workers.flight_file import Owner
from workers.flight_recorder import SUFFIX, Slot
from workers.flight_recovery import tell_of_the_dead, tell_of_the_dead_now_and_then

pytestmark = pytest.mark.usefixtures("database")

PAID = Receipt("op_1", {"amount": 120})
S = StepStatus
Act = Callable[[Slot], None]


def claimed(slot: Slot) -> None:
    pass


def sending(slot: Slot) -> None:
    slot.sending()


def answered(slot: Slot) -> None:
    slot.sending()
    slot.answered(PAID)


def refused(slot: Slot) -> None:
    slot.sending()
    slot.answered(Refused("the card is blocked", "blocked"))


def refused_for_good(slot: Slot) -> None:
    slot.answered(Refused("no such customer", "status_422", permanent=True))


def told_to_wait(slot: Slot) -> None:
    slot.answered(Refused("slow down", "status_429", retry_after=100.0))


def without_its_artifact(slot: Slot) -> None:
    slot.answered(Refused("the bytes are gone", ARTIFACT_MISMATCH, permanent=True))


@pytest.fixture(autouse=True)
def home(tmp_path: Path, settings: Settings) -> Path:
    settings.CHECKPOINT_HOME = tmp_path
    return tmp_path


@pytest.fixture
def fly() -> Iterator[Callable[..., int]]:
    """Starts a process that notes one call in its flight recorder and then hangs; returns its id."""
    started: list[int] = []

    def start(worker: uuid.UUID, made: Claim, act: Act) -> int:
        reader, writer = os.pipe()
        pid = os.fork()
        if pid == 0:
            _fly(worker, made, act, writer)
        started.append(pid)
        os.close(writer)
        assert os.read(reader, 1) == b"x", "it noted the call"
        os.close(reader)
        return pid

    yield start
    for pid in started:
        kill(pid)


def _fly(worker: uuid.UUID, made: Claim, act: Act, writer: int) -> None:
    """In the child: never returns."""
    try:
        recorder = flight_recorder.start(worker, hands=1)
        recorder.claim([made])
        slot = recorder.slot(made)
        assert slot is not None
        act(slot)
        os.write(writer, b"x")
        signal.pause()
    finally:
        os._exit(1)


def kill(pid: int) -> None:
    """SIGKILL, and waits until it is gone."""
    try:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
    except (ProcessLookupError, ChildProcessError):
        return


def files() -> list[str]:
    return [file.name for file in flight_recorder.folder().glob(f"*{SUFFIX}")]


def flown(workflow: Workflow) -> list[str]:
    found = Evidence.objects.filter(step__workflow=workflow, kind="flight_record")
    return [evidence.finding for evidence in found]


Fly = Callable[..., int]


class TestProof:
    def test_killed_before_it_sent_it_is_tried_again_by_itself(self, fly: Fly, time_machine: MovableTime) -> None:
        workflow, dead = submit(OPAQUE), JournalDriver()
        made = dead.claim()
        kill(fly(dead.worker.id, made, claimed))
        tell_of_the_dead()
        assert step(workflow).status == S.FAILED
        time_machine.pass_seconds(5)
        assert JournalDriver().claim().attempt_number == 2
        assert (flown(workflow), Case.objects.count(), files()) == (["never_sent"], 0, [])

    def test_killed_after_the_answer_it_is_committed_by_itself(self, fly: Fly) -> None:
        workflow, dead = submit(OPAQUE), JournalDriver()
        kill(fly(dead.worker.id, dead.claim(), answered))
        tell_of_the_dead()
        found = step(workflow)
        assert (found.status, found.operation_id) == (S.COMMITTED, "op_1")
        assert found.receipt is not None
        assert (found.receipt.kind, found.receipt.facts_value) == ("flight_record", {"amount": 120})
        assert JournalDriver().turn() == []
        assert (step(workflow).status, Case.objects.count(), files()) == (S.VERIFIED, 0, [])
        assert found.attempts.get().applied is True

    def test_killed_after_a_refusal_it_counts_as_refused(self, fly: Fly) -> None:
        workflow, dead = submit(OPAQUE), JournalDriver()
        kill(fly(dead.worker.id, dead.claim(), refused))
        tell_of_the_dead()
        assert (step(workflow).status, flown(workflow)) == (S.FAILED, ["refused"])
        assert step(workflow).attempts.get().detail == "the card is blocked"

    def test_a_refusal_that_no_try_can_change_asks_at_once(self, fly: Fly, time_machine: MovableTime) -> None:
        workflow, dead = submit(OPAQUE), JournalDriver()
        kill(fly(dead.worker.id, dead.claim(), refused_for_good))
        tell_of_the_dead()
        time_machine.pass_seconds(5)
        assert JournalDriver().turn() == []
        assert case(workflow).reason == CaseReason.RETRIES_EXHAUSTED

    def test_the_wait_that_a_provider_asked_for_is_kept_to(self, fly: Fly, time_machine: MovableTime) -> None:
        workflow, dead = submit(OPAQUE), JournalDriver()
        kill(fly(dead.worker.id, dead.claim(), told_to_wait))
        tell_of_the_dead()
        time_machine.pass_seconds(90)
        assert JournalDriver().turn() == []
        assert step(workflow).status == S.FAILED
        time_machine.pass_seconds(20)
        assert JournalDriver().claim().attempt_number == 2

    def test_an_artifact_that_was_damaged_is_asked_about(self, fly: Fly) -> None:
        workflow, dead = submit(OPAQUE), JournalDriver()
        kill(fly(dead.worker.id, dead.claim(), without_its_artifact))
        tell_of_the_dead()
        assert (step(workflow).status, case(workflow).reason) == (S.FAILED, CaseReason.ARTIFACT_MISMATCH)

    def test_killed_in_mid_air_it_becomes_one_question_that_says_so(self, fly: Fly, time_machine: MovableTime) -> None:
        workflow, dead = submit(OPAQUE), JournalDriver()
        kill(fly(dead.worker.id, dead.claim(), sending))
        tell_of_the_dead()
        leases.end_process(dead.worker.id, ending="died")
        assert JournalDriver().turn() == []
        assert not Case.objects.exists()
        time_machine.pass_seconds(DEADLINE + 1)
        assert JournalDriver().turn() == []
        asked = case(workflow)
        assert (asked.reason, flown(workflow)) == (CaseReason.OUTCOME_UNKNOWN, ["sending"])
        assert Cut.WHILE_SENDING in asked.sentence

    def test_it_makes_no_difference_who_is_first_to_notice(self, fly: Fly) -> None:
        workflow, dead, other = submit(OPAQUE), JournalDriver(), JournalDriver()
        kill(fly(dead.worker.id, dead.claim(), answered))
        leases.end_process(dead.worker.id, ending="died")
        assert other.turn() == []
        assert step(workflow).attempts.get().ending == "lost"
        tell_of_the_dead()
        assert (step(workflow).status, step(workflow).attempts.get().applied) == (S.COMMITTED, True)

    def test_a_word_that_comes_after_the_question_answers_it(self, fly: Fly, time_machine: MovableTime) -> None:
        workflow, dead = submit(OPAQUE), JournalDriver()
        kill(fly(dead.worker.id, dead.claim(), answered))
        _give_up(dead, time_machine)
        assert Cut.UNREAD in case(workflow).sentence
        tell_of_the_dead()
        assert (case(workflow).status, case(workflow).closing) == (CaseStatus.SETTLED, HOW)
        assert step(workflow).status == S.COMMITTED

    def test_a_receipt_that_comes_after_something_newer_was_tried_asks_about_a_duplicate(
        self, fly: Fly, time_machine: MovableTime
    ) -> None:
        workflow, dead, other = submit(OPAQUE), JournalDriver(), JournalDriver()
        kill(fly(dead.worker.id, dead.claim(), answered))
        _give_up(dead, time_machine)
        answer(case(workflow), Decision.RETRY)
        time_machine.pass_seconds(100)
        assert other.claim().attempt_number == 2
        tell_of_the_dead()
        assert Case.objects.filter(reason=CaseReason.DUPLICATE_EFFECT, status=CaseStatus.OPEN).count() == 1

    def test_a_queryable_call_need_not_be_looked_up(self, fly: Fly) -> None:
        workflow, dead, other = submit(QUERYABLE), JournalDriver(), JournalDriver()
        kill(fly(dead.worker.id, dead.claim(), answered))
        leases.end_process(dead.worker.id, ending="died")
        other.claim(Activity.INSPECT)
        tell_of_the_dead()
        assert step(workflow).status == S.COMMITTED

    def test_of_a_host_s_processes_one_looks_at_a_time(self, fly: Fly) -> None:
        workflow, dead = submit(OPAQUE), JournalDriver()
        pid = fly(dead.worker.id, dead.claim(), claimed)
        tell_of_the_dead_now_and_then()
        kill(pid)
        tell_of_the_dead_now_and_then()
        assert step(workflow).status == S.STARTED, "somebody looked just now"
        looked = flight_recorder.folder() / "looked"
        os.utime(looked, (0, 0))
        tell_of_the_dead_now_and_then()
        assert step(workflow).status == S.FAILED


def test_a_file_that_somebody_else_has_told_in_this_moment_is_nothing_to_warn_of(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, tmp_path: Path
) -> None:
    listed = SimpleNamespace(glob=lambda pattern: [tmp_path / f"gone{SUFFIX}"])
    monkeypatch.setattr("workers.flight_recovery.folder", lambda: listed)
    tell_of_the_dead()
    assert caplog.records == []


class TestNoProof:
    def test_a_paused_process_proves_nothing(self, fly: Fly) -> None:
        workflow, paused = submit(OPAQUE), JournalDriver()
        pid = fly(paused.worker.id, paused.claim(), claimed)
        os.kill(pid, signal.SIGSTOP)
        tell_of_the_dead()
        assert (step(workflow).status, flown(workflow), len(files())) == (S.STARTED, [], 1)
        kill(pid)
        tell_of_the_dead()
        assert (step(workflow).status, files()) == (S.FAILED, [])

    def test_another_boot_proves_nothing(self) -> None:
        """What a file says that the disk kept over a reboot may be older than what was in memory."""
        workflow, dead = submit(OPAQUE), JournalDriver()
        made = dead.claim()
        for of_boot, told in (("another boot", []), (boot.boot_id(), ["never_sent"])):
            owner = Owner(dead.worker.id, of_boot, 1)
            slot = flight_file.head(owner.mark, made.step_id, made.fence, made.attempt_number, Phase.CLAIMED)
            flight_recorder.folder().mkdir(exist_ok=True)
            file = flight_recorder.folder() / f"{dead.worker.id}{SUFFIX}"
            file.write_bytes((owner.to_page() + slot).ljust(owner.size, b"\0"))
            tell_of_the_dead()
            assert flown(workflow) == told
            assert file.exists() is (told == [])

    def test_an_old_fence_another_attempt_or_another_worker_s_claim_prove_nothing(self, fly: Fly) -> None:
        workflow, dead = submit(OPAQUE), JournalDriver()
        made = dead.claim()
        for wrong in (replace(made, fence=made.fence - 1), replace(made, attempt_number=2)):
            kill(fly(dead.worker.id, wrong, claimed))
            tell_of_the_dead()
        kill(fly(JournalDriver().worker.id, made, claimed))
        tell_of_the_dead()
        assert (step(workflow).status, flown(workflow), files()) == (S.STARTED, [], [])

    def test_a_claim_that_was_never_committed_is_passed_over(self, fly: Fly) -> None:
        dead = JournalDriver()
        never = submit(OPAQUE)
        made = dead.claim()
        kill(fly(dead.worker.id, replace(made, step_id=uuid.uuid4()), claimed))
        tell_of_the_dead()
        assert (step(never).status, files()) == (S.STARTED, [])

    def test_a_damaged_slot_proves_nothing(self, fly: Fly) -> None:
        workflow, dead = submit(OPAQUE), JournalDriver()
        kill(fly(dead.worker.id, dead.claim(), claimed))
        file = flight_recorder.folder() / f"{dead.worker.id}{SUFFIX}"
        content = bytearray(file.read_bytes())
        used = next(place for place in range(4096, len(content)) if content[place])
        content[used] ^= 1
        file.write_bytes(content)
        tell_of_the_dead()
        assert (step(workflow).status, flown(workflow)) == (S.STARTED, [])

    def test_the_file_of_another_database_s_worker_is_left_for_it(self, fly: Fly) -> None:
        submit(OPAQUE)
        kill(fly(uuid.uuid4(), JournalDriver().claim(), claimed))
        tell_of_the_dead()
        assert len(files()) == 1

    def test_a_file_that_nobody_asks_for_goes_after_a_day(self, fly: Fly) -> None:
        submit(OPAQUE)
        worker = uuid.uuid4()
        pid = fly(worker, JournalDriver().claim(), claimed)
        file = flight_recorder.folder() / f"{worker}{SUFFIX}"
        day_ago = file.stat().st_mtime - flight_recovery.KEEP_SECONDS - 60
        os.utime(file, (day_ago, day_ago))
        tell_of_the_dead()
        assert len(files()) == 1, "its process lives"
        kill(pid)
        os.utime(file, (day_ago, day_ago))
        tell_of_the_dead()
        assert files() == []

    def test_without_a_word_the_question_waits_for_it_and_then_says_that_there_was_none(
        self, time_machine: MovableTime
    ) -> None:
        workflow, dead, other = submit(OPAQUE), JournalDriver(), JournalDriver()
        dead.claim()
        time_machine.pass_seconds(DEADLINE + 60)
        assert other.turn() == []
        assert not Case.objects.exists()
        time_machine.pass_seconds(WAIT_FOR_WORD.total_seconds() + 1)
        assert other.turn() == []
        assert Cut.UNREAD in case(workflow).sentence

    def test_what_is_told_twice_changes_nothing(self) -> None:
        workflow, dead = submit(OPAQUE), JournalDriver()
        made = dead.claim()
        record = FlightRecord(made.step_id, made.fence, made.attempt_number, Phase.ANSWERED, PAID)
        assert hear(dead.worker.id, [record])
        version, entries = step(workflow).version, AuditEntry.objects.count()
        assert hear(dead.worker.id, [record])
        assert hear(dead.worker.id, [replace(record, phase=Phase.CLAIMED, outcome=None)])
        assert (step(workflow).version, AuditEntry.objects.count()) == (version, entries)


def _give_up(dead: JournalDriver, time_machine: MovableTime) -> None:
    """Nobody of the dead worker's host says anything in time."""
    leases.end_process(dead.worker.id, ending="died")
    assert JournalDriver().turn() == []
    time_machine.pass_seconds(DEADLINE + WAIT_FOR_WORD.total_seconds() + 1)
    assert JournalDriver().turn() == []


def test_the_boot_id_stays_the_same() -> None:
    assert boot.boot_id() == boot.boot_id() != ""
