"""Files that people bring to a case: evidence on their word, kept by hash, handed out as attachments only."""

from __future__ import annotations

import hashlib
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User

from approvals.casework import attachments
from approvals.casework.attachments import File
from approvals.decisions import decide
from approvals.models import Attachment
from checkpoint import artifacts, audit
from checkpoint.errors import ActionIncomplete, Forbidden, NotFound, TooMany
from checkpoint.models import Artifact, Case, Evidence, Workflow
from checkpoint.states import Decision, StepStatus
from tests import factories
from tests.case_driver import at_once, entries, onlooker, raised, stranger, worker

STATEMENT = b"2026-11-30  CHARGE  129.00 EUR  tok_91\n"
SHA256 = hashlib.sha256(STATEMENT).hexdigest()


@pytest.fixture(autouse=True)
def storage(database: Any, settings: Any, tmp_path: Path) -> Path:
    """Where the bytes are."""
    settings.MEDIA_ROOT = tmp_path
    return tmp_path


def stored(storage: Path) -> list[str]:
    return sorted(path.name.partition("-")[0] for path in storage.rglob("*") if path.is_file())


def attach(case: Case, person: User, content: bytes = STATEMENT, **changed: Any) -> Attachment:
    file = File(**{"name": "statement.txt", "media_type": "text/plain", "chunks": [content]} | changed)
    reason = "The bank's statement."
    return attachments.attach(case_id=case.pk, file=file, person=person, channel="command", reason=reason)


def test_a_file_becomes_evidence_that_names_its_bytes(storage: Path) -> None:
    case = factories.case()
    before = Workflow.objects.get().version
    made = attach(case, worker(case))
    assert stored(storage) == [SHA256]
    evidence = Evidence.objects.get(pk=made.evidence_id)
    assert (evidence.kind, evidence.finding, evidence.standing) == ("attestation", "file", "attested")
    assert (evidence.source, evidence.step_id) == ("person ada", case.step_id)
    assert evidence.facts_value == {
        "artifact": str(made.artifact_id), "file": "statement.txt", "sha256": SHA256, "size": len(STATEMENT),
        "reason": "The bank's statement.",
    }  # fmt: skip
    with artifacts.open_verified(made.artifact) as kept:
        assert kept.read() == STATEMENT
    assert Workflow.objects.get().version == before + 1, "a resume packet made now holds more than the last one"
    case.step.refresh_from_db()
    assert case.step.version == case.step_version, "nobody's half-written answer gets stale by it"
    assert [entry.actor for entry in (*entries(case, "keep"), *entries(case, "attach"))] == ["ada", "ada"]
    assert list(audit.broken_links()) == []


def test_the_same_file_again_is_the_same_attachment_and_another_persons_is_another() -> None:
    case = factories.case()
    ada, grace = worker(case), worker(case, "grace")
    assert attach(case, ada) == attach(case, ada)
    assert attach(case, grace).artifact.sha256 == SHA256
    assert (Attachment.objects.count(), Artifact.objects.count(), Evidence.objects.count()) == (2, 2, 2)


def test_people_who_bring_files_at_once_all_do() -> None:
    case = factories.case()
    people = [worker(case, f"person{number}") for number in range(5)]
    assert raised(at_once(*[partial(attach, case, person) for person in people])) == []
    assert Attachment.objects.count() == 5


def test_a_file_that_is_too_large_leaves_nothing(storage: Path, settings: Any) -> None:
    settings.CHECKPOINT_LARGEST_ATTACHMENT = 100
    case = factories.case()
    ada = worker(case)
    attach(case, ada, b"x" * 100)
    with pytest.raises(ActionIncomplete, match=r"^file: at most 100 bytes"):
        attach(case, ada, chunks=[b"x" * 60, b"x" * 41])
    assert len(stored(storage)) == Attachment.objects.count() == Artifact.objects.count() == 1


@pytest.mark.parametrize(
    "changed", [{"chunks": []}, {"name": " "}, {"name": "x" * 256}, {"name": "a\0b"}], ids=["empty", "", "long", "nul"]
)
def test_a_file_has_a_name_and_something_in_it(changed: dict[str, Any]) -> None:
    case = factories.case()
    with pytest.raises(ActionIncomplete, match=r"^file: "):
        attach(case, worker(case), **changed)
    assert not Artifact.objects.exists()


def test_a_media_type_that_is_none_is_not_believed() -> None:
    case = factories.case()
    ada = worker(case)
    assert attach(case, ada, media_type="Text/HTML").artifact.media_type == "text/html"
    assert attach(case, ada, b"2", media_type="text/html; x=\r\ny").artifact.media_type == "application/octet-stream"


def test_a_case_takes_so_many_files(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attachments, "MOST_FILES", 1)
    case = factories.case()
    ada = worker(case)
    attach(case, ada)
    with pytest.raises(TooMany):
        attach(case, ada, b"another")


def test_who_may_not_decide_stores_not_a_byte(storage: Path) -> None:
    case = factories.case()
    with pytest.raises(Forbidden):
        attach(case, onlooker(case))
    with pytest.raises(NotFound):
        attach(case, stranger())
    assert stored(storage) == []


def test_who_does_not_see_the_case_does_not_get_the_file() -> None:
    case = factories.case()
    made = attach(case, worker(case))
    assert attachments.visible_attachment(onlooker(case), made.pk) == made
    with pytest.raises(NotFound):
        attachments.visible_attachment(stranger(), made.pk)


def test_a_file_can_be_brought_to_a_closed_case() -> None:
    case = factories.case()
    Case.objects.filter(pk=case.pk).update(status="settled", closing="a late receipt", closed_at=case.opened_at)
    attach(case, worker(case))


def test_s38_it_did_happen_here_is_the_id_and_here_is_the_statement() -> None:
    case = factories.case()
    ada = worker(case)
    brought = attach(case, ada)
    decide(
        case_id=case.pk, kind=Decision.CONFIRM, person=ada, channel="console", reason="It is on the statement.",
        operation_id="op_77", step_version=case.step_version, arguments_hash=case.arguments_hash,
    )  # fmt: skip
    case.step.refresh_from_db()
    assert (case.step.status, case.step.operation_id) == (StepStatus.COMMITTED, "op_77")
    attested = Evidence.objects.filter(step=case.step, kind="attestation").order_by("id")
    assert [(found.finding, found.operation_id) for found in attested] == [("file", ""), ("confirmed", "op_77")]
    assert attested[0].pk == brought.evidence_id
