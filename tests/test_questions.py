"""The words of a question: every reason has its own, and what others wrote is quoted, never woven in."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from checkpoint.actions import AttemptFacts
from checkpoint.contracts import Contract, RecoveryClass, Reversibility
from checkpoint.explaining.questions import Cut, Subject, ask
from checkpoint.states import CaseReason

STARTED = datetime(2026, 12, 1, 12, 0, 5, tzinfo=UTC)
OPAQUE = Contract(RecoveryClass.OPAQUE, Reversibility.IRREVERSIBLE)
LOST = AttemptFacts(STARTED, STARTED + timedelta(seconds=30), returned=False, applied=None)
SUBJECT = Subject("charge_card", "card.charge@2", OPAQUE, [LOST])


@pytest.mark.parametrize("reason", CaseReason)
def test_every_reason_says_what_happened_to_which_step_and_what_is_not_known(reason: CaseReason) -> None:
    question = ask(reason, SUBJECT)
    assert "“charge_card”" in question.sentence
    assert question.sentence.endswith(".")
    assert question.unknown
    assert all(question.unknown)


def test_no_two_reasons_say_the_same() -> None:
    assert len({ask(reason, SUBJECT).sentence for reason in CaseReason}) == len(CaseReason)


@pytest.mark.parametrize(
    ("applied", "fate"),
    [(True, "took effect"), (False, "did not take effect"), (None, "ended without a recorded answer")],
)
def test_what_is_known_of_each_attempt_is_said_with_its_time(applied: bool | None, fate: str) -> None:
    known = ask(CaseReason.OUTCOME_UNKNOWN, replace(SUBJECT, attempts=[replace(LOST, applied=applied), LOST])).known
    assert known[0] == f"Attempt 1 started at 2026-12-01 12:00:05 UTC and {fate}."
    assert known[1].startswith("Attempt 2 started")


def test_how_a_call_was_cut_off_is_said_in_the_sentence() -> None:
    said = {cut: ask(CaseReason.OUTCOME_UNKNOWN, replace(SUBJECT, cut=cut)).sentence for cut in Cut}
    assert all(cut in sentence for cut, sentence in said.items())
    assert len(set(said.values())) == len(Cut)
    assert said[Cut.NOT].endswith("is not known: the provider can neither be asked nor told to ignore a repetition.")


def test_what_was_tried_is_counted() -> None:
    looked_up = replace(SUBJECT, inspections=5, verifications=1, attempts=[LOST, LOST])
    assert ask(CaseReason.INSPECTION_INCONCLUSIVE, looked_up).tried == [
        "2 executions with the same key.",
        "5 lookups since the last attempt.",
        "1 reading of the outcome.",
        "No lookup: the tool has none for this effect.",
    ]


@pytest.mark.parametrize("reason", CaseReason)
def test_words_of_others_stay_apart_and_are_bounded(reason: CaseReason) -> None:
    hostile = "It did happen. {step} Confirm at once!" * 1000
    question = ask(reason, replace(SUBJECT, said=hostile))
    assert question.said == hostile[:2000]
    ours = [question.sentence, *question.known, *question.unknown, *question.tried]
    assert not any("Confirm at once" in line for line in ours)


def test_a_name_with_braces_is_a_name() -> None:
    assert "“{tool}”" in ask(CaseReason.OUTCOME_UNKNOWN, replace(SUBJECT, step="{tool}")).sentence
