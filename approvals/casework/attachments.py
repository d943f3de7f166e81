"""Files that people bring to a case: what the bank sent, a picture of a screen. They become evidence on their word.

The bytes are kept by their SHA-256 before the transaction that names them, so a crash leaves no row without bytes.
Nobody here looks into a file, and nobody's browser is told to: it is handed out as an attachment only.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from uuid import UUID

from django.conf import settings
from django.contrib.auth.models import User

from approvals.casework import case_work
from approvals.casework.case_work import CaseWork
from approvals.models import Attachment
from approvals.queries import cases_visible_to
from checkpoint import artifacts, transitions
from checkpoint.artifacts import Kept
from checkpoint.errors import ActionIncomplete, ArtifactTooLarge, NotFound, TooMany
from checkpoint.models import Artifact, EvidenceKind
from checkpoint.people import Actor
from checkpoint.permissions import Person
from checkpoint.rows import evidence_log
from checkpoint.rows.step_rows import StepRow, of_ids
from checkpoint.states import Standing
from checkpoint.transactions import one_transaction
from checkpoint.transitions import Changes

MOST_FILES = 50
NAME_LIMIT = 255
ACTION = "attach files to cases"


@dataclass(frozen=True)
class File:
    """What a person brings. Name and media type are the sender's word."""

    name: str
    media_type: str
    chunks: Iterable[bytes]


def attach(*, case_id: UUID, file: File, person: User, channel: str, reason: str) -> Attachment:
    """Keeps a file as evidence about the case's step, also after the case was closed.

    The same person bringing the same bytes again gets the same attachment back (S18).

    Args:
        reason: what the file shows.

    Raises:
        NotFound, Forbidden: as `case_work.begin`; before a byte is stored.
        ActionIncomplete: no reason, no name, nothing in the file, more than CHECKPOINT_LARGEST_ATTACHMENT bytes, or
            more than is left for the workflow's artifacts.
        TooMany: the case has MOST_FILES.
    """
    reason = case_work.checked_text("reason", reason, wanted="say what the file shows.")
    name = case_work.checked_text("file", file.name, wanted="choose a file.", limit=NAME_LIMIT)
    # Nobody fills the storage who may not attach anything.
    case_work.require_worker(case_id, User.objects.get(pk=person.pk), action=ACTION)
    try:
        kept = artifacts.keep_bytes(file.chunks, largest=settings.CHECKPOINT_LARGEST_ATTACHMENT)
    except ArtifactTooLarge:
        raise ActionIncomplete("file", f"at most {settings.CHECKPOINT_LARGEST_ATTACHMENT:,} bytes.") from None
    if not kept.size:
        raise ActionIncomplete("file", "it is empty.")
    try:
        return _attach(case_id, person, channel, _Draft(name, artifacts.believed(file.media_type), kept, reason))
    except ArtifactTooLarge as error:
        raise ActionIncomplete("file", str(error)) from None


@dataclass(frozen=True)
class _Draft:
    name: str
    media_type: str
    kept: Kept
    reason: str


@one_transaction
def _attach(case_id: UUID, person: User, channel: str, draft: _Draft) -> Attachment:
    work = case_work.begin(case_id, person, channel, action=ACTION)
    earlier = work.case.attachments.filter(person=work.person, artifact__sha256=draft.kept.sha256).first()
    if earlier is not None:
        return earlier
    if work.case.attachments.count() >= MOST_FILES:
        raise TooMany(f"This case has {MOST_FILES} files, and no more are kept.")
    actor = Actor(work.name, channel)
    changes = transitions.lock([work.case.workflow_id], actor=actor)
    row = of_ids([work.case.step_id])[work.case.step_id]
    artifact = Artifact(workflow_id=row.workflow_id, name=draft.name, media_type=draft.media_type, **vars(draft.kept))
    artifacts.insert(artifact, actor=actor, at=changes.now)
    evidence_id = _attest(changes, row, artifact, draft.reason)
    changes.finish()
    return _record(work, artifact, evidence_id, draft.reason)


def _attest(changes: Changes, row: StepRow, artifact: Artifact, reason: str) -> UUID:
    """The evidence names the bytes by their hash: what was looked at can be proved later."""
    facts = {"artifact": str(artifact.pk), "file": artifact.name, "sha256": artifact.sha256, "reason": reason}
    evidence = evidence_log.observe(
        row.id, EvidenceKind.ATTESTATION, "file", facts | {"size": artifact.size},
        source=f"person {changes.actor.name}", standing=Standing.ATTESTED, fence=row.fence,
        attempt_number=row.attempt_count or None, now=changes.now,
    )  # fmt: skip
    changes.observe(evidence)
    changes.note(row, "attach", reason=reason, details={"artifact": str(artifact.pk), "sha256": artifact.sha256})
    return evidence.id


def _record(work: CaseWork, artifact: Artifact, evidence_id: UUID, reason: str) -> Attachment:
    return Attachment.objects.create(
        case=work.case,
        artifact=artifact,
        evidence_id=evidence_id,
        reason=reason,
        person=work.person,
        person_name=work.name,
        channel=work.channel,
        attached_at=work.now,
    )


def visible_attachment(person: Person, attachment_id: UUID) -> Attachment:
    """One attachment with its artifact, for whoever sees the case. Raises NotFound."""
    found = Attachment.objects.select_related("artifact").filter(
        pk=attachment_id, case__in=cases_visible_to(person)
    ).first()  # fmt: skip
    if found is None:
        raise NotFound(f"There is no file {attachment_id} that you may see.")
    return found
