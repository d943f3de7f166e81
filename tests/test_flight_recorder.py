"""The file of a flight recorder: whole or no evidence, and only for as long as it tells something."""

from __future__ import annotations

import os
import uuid
from datetime import UTC, datetime
from pathlib import Path

import pytest
from pytest_django.fixtures import Settings

from checkpoint.models import Activity
from checkpoint.outcomes import Receipt, Refused
from checkpoint.rows.evidence_log import FACTS_LIMIT
from checkpoint.turns.calls import Claim, Report
from checkpoint.turns.flight_records import FlightRecord, Phase
from workers import flight_file, flight_recorder, flight_recovery
from workers.boot import boot_id
from workers.flight_file import Damaged, Owner
from workers.flight_recorder import SUFFIX, FlightRecorder

WORKER = uuid.UUID(int=7)
PAID = Receipt("op_1", {"amount": 120, "when": "2026-12-01"})


@pytest.fixture(autouse=True)
def home(tmp_path: Path, settings: Settings) -> Path:
    settings.CHECKPOINT_HOME = tmp_path
    return tmp_path


@pytest.fixture
def recorder() -> FlightRecorder:
    return flight_recorder.start(WORKER, hands=1)


def claim(fence: int = 1, activity: Activity = Activity.EXECUTE) -> Claim:
    now = datetime.now(UTC)
    return Claim(uuid.uuid4(), uuid.uuid4(), "pay", "card.charge", "1", activity, fence, 1, "key", "{}", 30.0, now)


def file() -> Path:
    return flight_recorder.folder() / f"{WORKER}{SUFFIX}"


def records() -> list[FlightRecord]:
    """What the file says, whoever holds its lock."""
    descriptor = os.open(file(), os.O_RDONLY)
    try:
        return flight_recovery.read(descriptor)[1]
    finally:
        os.close(descriptor)


def slot_of(recorder: FlightRecorder, made: Claim) -> flight_recorder.Slot:
    recorder.claim([made])
    slot = recorder.slot(made)
    assert slot is not None
    return slot


class TestWriting:
    def test_each_phase_is_in_the_file_at_once(self, recorder: FlightRecorder) -> None:
        made = claim(fence=3)
        slot = slot_of(recorder, made)
        assert records() == [FlightRecord(made.step_id, 3, 1, Phase.CLAIMED)]
        slot.sending()
        assert records() == [FlightRecord(made.step_id, 3, 1, Phase.SENDING)]
        slot.answered(PAID)
        assert records() == [FlightRecord(made.step_id, 3, 1, Phase.ANSWERED, PAID)]

    def test_a_slot_is_cleared_by_the_commit_of_its_report(self, recorder: FlightRecorder) -> None:
        made = claim()
        slot_of(recorder, made).answered(PAID)
        recorder.commit([])
        recorder.claim([])
        assert [record.outcome for record in records()] == [PAID], "a later turn that recorded something else"
        recorder.commit([Report(made, PAID)])
        assert records() == []

    def test_what_a_failed_turn_had_claimed_goes_with_the_next_turn(self, recorder: FlightRecorder) -> None:
        recorder.claim([claim()])
        second = claim()
        recorder.claim([second])
        recorder.commit([])
        assert [record.step_id for record in records()] == [second.step_id]

    def test_only_executions_take_a_slot_and_without_a_free_one_a_call_has_none(self, recorder: FlightRecorder) -> None:
        lookups = [claim(activity=Activity.INSPECT), claim(activity=Activity.VERIFY)]
        effects = [claim() for _ in range(3)]
        recorder.claim([*lookups, *effects])
        assert [recorder.slot(each) is not None for each in [*lookups, *effects]] == [False, False, True, True, False]

    def test_facts_that_are_too_large_are_kept_as_the_record_keeps_them(self, recorder: FlightRecorder) -> None:
        slot_of(recorder, claim()).answered(Receipt("op_2", {"text": "x" * 10 * FACTS_LIMIT}))
        (record,) = records()
        assert isinstance(record.outcome, Receipt)
        assert record.outcome.operation_id == "op_2"
        assert record.outcome.facts["omitted"].startswith("the facts have ")

    def test_an_answer_that_cannot_be_kept_leaves_what_was_noted(self, recorder: FlightRecorder) -> None:
        slot = slot_of(recorder, claim())
        slot.sending()
        slot.answered(Refused("no", code="x" * flight_file.SLOT_SIZE))
        slot.answered(Refused("no", code="\ud800"))
        assert [record.phase for record in records()] == [Phase.SENDING]

    def test_the_file_is_for_its_owner_alone_and_goes_when_it_tells_nothing(self, recorder: FlightRecorder) -> None:
        assert (file().stat().st_mode & 0o777, file().parent.stat().st_mode & 0o777) == (0o600, 0o700)
        made = claim()
        recorder.claim([made])
        recorder.commit([])
        recorder.close()
        assert file().exists(), "a call in flight"
        recorder.commit([Report(made, PAID)])
        recorder.close()
        assert not file().exists()

    def test_a_worker_that_cannot_make_its_file_says_so_and_goes_on_without_evidence(
        self, home: Path, caplog: pytest.LogCaptureFixture
    ) -> None:
        (home / "flight").write_text("in the way")
        recorder = flight_recorder.start(WORKER, hands=1)
        assert "no flight recorder" in caplog.text
        made = claim()
        recorder.claim([made])
        assert recorder.slot(made) is None
        recorder.commit([Report(made, PAID)])
        recorder.close()


def whole() -> tuple[bytes, bytes]:
    """The mark of a file, and a whole slot of it."""
    mark = Owner(WORKER, boot_id(), 1).mark
    answer = flight_file.answer_of(PAID)
    assert answer
    head = flight_file.head(mark, uuid.UUID(int=1), 5, 2, Phase.ANSWERED, answer)
    return mark, (head + answer).ljust(flight_file.SLOT_SIZE, b"\0")


class TestReading:
    def test_a_slot_that_was_cut_off_anywhere_in_its_writing_is_no_evidence(self) -> None:
        """Every prefix of the new head over an old record, which is what a kill in the middle of it leaves."""
        mark, _ = whole()
        step = uuid.UUID(int=1)
        old = flight_file.head(mark, step, 5, 2, Phase.CLAIMED)
        new = flight_file.head(mark, step, 5, 2, Phase.SENDING)
        torn = {new[:cut] + old[cut:] for cut in range(1, len(new))} - {new}
        assert len(torn) > 10
        for slot in torn:
            with pytest.raises(Damaged):
                flight_file.read(mark, slot)

    def test_one_changed_bit_anywhere_is_no_evidence(self) -> None:
        mark, slot = whole()
        used = flight_file.HEAD_SIZE + len(flight_file.answer_of(PAID) or b"")
        assert flight_file.read(mark, slot) is not None
        for place in range(used):
            changed = bytearray(slot)
            changed[place] ^= 1 << (place % 8)
            with pytest.raises(Damaged):
                flight_file.read(mark, bytes(changed))

    def test_a_slot_of_another_file_is_no_evidence(self) -> None:
        _, slot = whole()
        for other in (Owner(uuid.UUID(int=8), boot_id(), 1), Owner(WORKER, "another boot", 1)):
            with pytest.raises(Damaged):
                flight_file.read(other.mark, slot)

    def test_a_first_page_that_is_damaged_or_cut_short_is_no_evidence(self) -> None:
        page = Owner(WORKER, boot_id(), 1).to_page()
        assert Owner.from_page(page) == Owner(WORKER, boot_id(), 1)
        for wrong in (b"", page[:50], bytes(len(page)), bytes([page[0] ^ 1]) + page[1:], page[:30] + b"x" + page[31:]):
            with pytest.raises(Damaged):
                Owner.from_page(wrong)
