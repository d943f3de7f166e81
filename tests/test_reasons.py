"""A reason that is demanded says something, whoever demands it."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from uuid import uuid4

import pytest
from django.contrib.auth.models import User

from approvals import decisions, locked_requests
from approvals.bulk import jobs
from approvals.casework import case_work
from approvals.rules import policy_versions
from checkpoint import reasons, workflows
from checkpoint.config.environment import BASE_DIR
from checkpoint.errors import ActionIncomplete, CheckpointError, DecisionIncomplete
from checkpoint.identity import accounts
from checkpoint.people import ENGINE
from checkpoint.states import Decision

NOTHING = ["", " \n", "\u200b", "\u202e", "\u00a0\u2028\u2029", "\ufeff\u2060", "\u2800", "\u3164", "\x07"]
UNSTORABLE = ["why\x00", "why \ud800"]

DEMANDS: list[Callable[[str], object]] = [
    locked_requests.complete_reason,
    jobs._complete,
    policy_versions._check_reason,
    accounts._checked,
    lambda text: case_work.checked_text("reason", text, wanted="say why"),
]


@pytest.mark.parametrize("text", [*NOTHING, *UNSTORABLE])
def test_what_says_nothing_or_cannot_be_stored_is_no_reason(text: str) -> None:
    for demand in DEMANDS:
        with pytest.raises(CheckpointError, match="reason: "):
            demand(text)


@pytest.mark.usefixtures("database")
@pytest.mark.parametrize("text", ["\u200b", *UNSTORABLE])
def test_winding_down_needs_a_reason_that_is_seen(text: str) -> None:
    with pytest.raises(ActionIncomplete, match="reason: "):
        workflows.abandon(workflow_id=uuid4(), actor=ENGINE, reason=text)


@pytest.mark.parametrize(
    "fields", [{"reason": text} for text in [*NOTHING, *UNSTORABLE]] + [{"operation_id": "\ud800"}]
)
def test_a_decision_needs_a_reason_that_is_seen(fields: dict[str, str]) -> None:
    given = {"reason": "I looked.", "operation_id": "", **fields}
    with pytest.raises(DecisionIncomplete, match=next(iter(fields))):
        decisions.decide(
            case_id=uuid4(),
            kind=Decision.RETRY,
            person=User(username="ada"),
            channel="console",
            step_version=1,
            arguments_hash="",
            reason=given["reason"],
            operation_id=given["operation_id"],
        )


@pytest.mark.parametrize("text", ["no", "x\u200by", "理由", "👍", "-", "לא\u200f"])
def test_what_can_be_seen_is_a_reason(text: str) -> None:
    assert reasons.problem(text, wanted="say why", limit=10) == ""


def test_too_long_a_reason_says_by_how_much() -> None:
    assert reasons.problem("word", wanted="say why", limit=3) == "at most 3 characters, this has 4."


def test_every_limit_of_a_reason_is_held_by_the_one_function() -> None:
    sources = [path for part in ("approvals", "checkpoint") for path in Path(BASE_DIR, part).rglob("*.py")]
    for source in sources:
        assert not re.search(r"> REASON_LIMIT", source.read_text(encoding="utf-8")), source
