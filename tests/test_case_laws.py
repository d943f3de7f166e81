"""What PostgreSQL refuses about what people do with cases, in raw SQL, as the application and as the owner."""

from __future__ import annotations

import uuid
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User

from approvals.casework import assignments, attachments, comments, escalations, snoozes
from approvals.casework.attachments import File
from approvals.models import Assignment, Attachment, Comment, Escalation, Signature, Snooze
from checkpoint import clock
from checkpoint.models import Case
from tests import factories
from tests.case_driver import worker
from tests.law_driver import ACCEPTED, RawSession, application, raw

__all__ = ["application", "raw"]

pytestmark = pytest.mark.usefixtures("database")

APPEND_ONLY = (Comment, Attachment, Escalation, Signature)
ENDING = {Assignment: "ended_at", Snooze: "woken_at"}
NOW = "2026-12-01T12:00:00Z"


@pytest.fixture
def worked_on(settings: Any, tmp_path: Path) -> Case:
    """A case with one row in every table."""
    settings.MEDIA_ROOT = tmp_path
    case = factories.case()
    who: dict[str, Any] = {"case_id": case.pk, "person": worker(case), "channel": "console"}
    assignments.claim(**who)
    comments.comment(text="I asked the bank.", **who)
    attachments.attach(file=File("a.txt", "text/plain", [b"paid"]), reason="The statement.", **who)
    escalations.escalate(reason="urgent", **who)
    snoozes.snooze(lasting=timedelta(hours=1), reason="later", **who)
    Signature.objects.create(
        case=case, kind="confirm", reason="seen", person=who["person"], person_name="ada", channel="console",
        step_version=case.step.version, signed_at=clock.now(),
    )  # fmt: skip
    return case


def row_of(model: Any) -> Any:
    """The rows of a model, whichever."""
    return model.objects.all()


def row(model: Any) -> tuple[str, uuid.UUID]:
    """Table and id of the only row."""
    return model._meta.db_table, row_of(model).get().pk


def test_what_people_said_signed_and_brought_stays_as_it_was(worked_on: Case, raw: RawSession) -> None:
    other = User.objects.create_user("eve").pk
    for model in APPEND_ONLY:
        table, key = row(model)
        for column in [field.column for field in model._meta.fields if field.column != "person_id"]:
            assert raw.tries(f"UPDATE {table} SET {column} = {column}") in {"no right", "append_only"}, (table, column)
        assert raw.updates(table, key, person_id=other) == "append_only"
        assert raw.updates(table, key, person_id=None) == ACCEPTED, "an account can be erased, its name stays"


def test_an_assignment_and_a_snooze_end_once_and_are_otherwise_fixed(worked_on: Case, raw: RawSession) -> None:
    ends = {"ended_at": {"ended_at": NOW}, "woken_at": {"woken_at": NOW, "woken_by_name": "ada"}}
    for model, ending in ENDING.items():
        table, key = row(model)
        assert raw.updates(table, key, **ends[ending]) == ACCEPTED
        assert raw.updates(table, key, person_id=None) == ACCEPTED
        changes = {"case_id": uuid.uuid4(), "person_name": "eve", "reason": "x", "channel": "api"}
        assert {raw.updates(table, key, **{name: value}) for name, value in changes.items()} == {"body_is_fixed"}
        row_of(model).filter(pk=key).update(**ends[ending])
        assert raw.updates(table, key, **{ending: "2027-01-01T00:00:00Z"}) == "ending_is_final"
        assert raw.updates(table, key, **{ending: None}) in {"ending_is_final", "constraint snooze_woken_whole"}


def test_nothing_of_it_is_deleted_or_truncated(worked_on: Case, raw: RawSession) -> None:
    for model in (*APPEND_ONLY, *ENDING):
        table, _ = row(model)
        assert raw.tries(f"DELETE FROM {table}") in {"no right", "never_deleted"}, table
        assert raw.tries(f"TRUNCATE {table} CASCADE") in {"no right", "never_truncated"}, table


def test_one_case_has_one_holder_one_escalation_and_a_snooze_that_ends(worked_on: Case, raw: RawSession) -> None:
    answers = {
        model: raw.inserts_copy(*row(model), id=uuid.uuid4(), **more)
        for model, more in [
            (Assignment, {}),
            (Escalation, {}),
            (Signature, {}),
            (Snooze, {"ends_at": "2020-01-01T00:00:00Z"}),
        ]
    }
    assert answers[Assignment] == "constraint assignment_one_at_a_time"
    assert answers[Escalation].startswith("constraint approvals_escalation_case_id")
    assert answers[Signature] == "constraint signature_once_a_person"
    assert answers[Snooze] == "constraint snooze_ends"


def test_an_account_can_be_erased_and_what_it_did_keeps_its_name(worked_on: Case) -> None:
    User.objects.get(username="ada").delete()
    for model in (*APPEND_ONLY, *ENDING):
        kept = row_of(model).get()
        assert (kept.person_id, kept.person_name) == (None, "ada")
