"""Named intents: one business effect that several steps want, of one workflow or of many; one of them brings it about.

A name belongs to a team and a tool, so whoever sees a step that names an intent sees the step that owns it. The first
step that is written ahead owns it. Others wait for the owner and take its receipt. An owner that was never sent passes
the intent on when it ends, and also when its turn has not come while another's has: so an owner that is waited for is
always at the front of its own plan, and no two workflows wait for each other.

What is decided here is decided under the intent's row lock, which is taken after workflows and before steps.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterable
from dataclasses import dataclass

from checkpoint.canonical import sha256_hex
from checkpoint.explaining.hostile_text import plain
from checkpoint.models.evidence import EvidenceKind
from checkpoint.models.identifiers import uuid7
from checkpoint.rows import evidence_log, statements
from checkpoint.rows.step_rows import StepRow
from checkpoint.states import CaseReason, Standing, StepStatus
from checkpoint.transitions import Changes
from checkpoint.turns import pinned

SHOWN = 300  # characters of arguments in a refusal

_TAKE = """
INSERT INTO checkpoint_intent (id, team_id, owner_id, tool, name, key, arguments_hash)
SELECT id, %(team)s, step_id, tool, name, key, arguments_hash FROM json_to_recordset(%(wishes)s) AS wish(
  id uuid, step_id uuid, tool text, name text, key text, arguments_hash text)
ON CONFLICT DO NOTHING
"""
_OWNER = """
SELECT intent.id, intent.tool, intent.name, intent.arguments_hash, owner.id AS owner_id, owner.workflow_id, owner.name,
       owner.arguments, owner.status, owner.attempt_count, owner.standing, owner.operation_id, owner.receipt_id,
       owner.position = (SELECT min(position) FROM checkpoint_step WHERE workflow_id = owner.workflow_id
                         AND status NOT IN ('verified', 'superseded', 'abandoned')),
       EXISTS (SELECT FROM checkpoint_step WHERE compensates_id = owner.id
               AND (attempt_count > 0 OR status NOT IN ('abandoned', 'superseded')))
FROM checkpoint_intent AS intent JOIN checkpoint_step AS owner ON owner.id = intent.owner_id
"""
_OWNERS = f"""{_OWNER}
WHERE intent.team_id = %(team)s AND (intent.tool, intent.name) IN (
  SELECT tool, name FROM json_to_recordset(%(wishes)s) AS wish(tool text, name text))
"""
_LOCK = "SELECT id FROM checkpoint_intent WHERE key = %(key)s FOR NO KEY UPDATE SKIP LOCKED"
_OWNER_OF_LOCKED = f"{_OWNER} WHERE intent.id = %(id)s"
_PASS_ON = "UPDATE checkpoint_intent SET owner_id = %(owner)s WHERE id = %(id)s"
_RECEIPT = "SELECT source, facts, sha256 FROM checkpoint_evidence WHERE id = %(id)s"


@dataclass(frozen=True)
class Wish:
    """What a step that names an intent wants, its arguments complete."""

    id: uuid.UUID
    step_id: uuid.UUID
    tool: str
    name: str
    key: str
    arguments: str
    arguments_hash: str


@dataclass(frozen=True)
class Owner:
    """The step that owns an intent, as read.

    Attributes:
        at_front: its turn has come, or it has ended.
        compensated: its effect is being undone, was, or may have been.
    """

    intent_id: uuid.UUID
    tool: str
    intent_name: str
    arguments_hash: str
    step_id: uuid.UUID
    workflow_id: uuid.UUID
    step_name: str
    arguments: str
    status: str
    attempt_count: int
    standing: str
    operation_id: str
    receipt_id: uuid.UUID | None
    at_front: bool | None
    compensated: bool

    def __str__(self) -> str:
        return f"step {self.step_name} of workflow {self.workflow_id}"

    @property
    def gives_way(self) -> bool:
        """Nothing was sent under the intent, and its owner has ended or its turn has not come."""
        ended = self.status in (StepStatus.ABANDONED, StepStatus.SUPERSEDED)
        return not self.attempt_count and (ended or (self.status == StepStatus.PREPARED and not self.at_front))

    @property
    def closed(self) -> str:
        """Why nobody can have the effect under this name any more; empty where somebody can."""
        if self.status == StepStatus.ABANDONED and self.attempt_count:
            return f"“{self.intent_name}” is closed: {self} was sent, and then abandoned. Find out whether it happened."
        if self.compensated:
            return f"“{self.intent_name}” is closed: what {self} brought about is undone, or being undone."
        return ""


@dataclass(frozen=True)
class Refusal:
    """Why a step cannot have what it names."""

    reason: CaseReason
    note: str


def take(wishes: Iterable[Wish], *, team_id: uuid.UUID) -> dict[uuid.UUID, str]:
    """Takes the named intents that nobody has; others wait for their owners.

    Returns:
        For each step that cannot have what it names, why: it means other arguments, or the intent is closed.
    """
    # In one order, so that two who insert the same names wait for each other in one direction only.
    ordered = sorted(wishes, key=lambda wish: (wish.name, wish.tool))
    if not ordered:
        return {}
    listed = statements.rows(ordered)
    statements.change(_TAKE, team=team_id, wishes=listed)
    owners = {(one.tool, one.intent_name): one for one in _owners(_OWNERS, team=team_id, wishes=listed)}
    refused = ((wish.step_id, _refusal(wish, owners[wish.tool, wish.name])) for wish in ordered)
    return {step_id: why for step_id, why in refused if why}


def wish(step_id: uuid.UUID, *, tool: str, name: str, key: str, arguments: str) -> Wish:
    """A new wish; the intent's id is made for the case that nobody has it."""
    return Wish(uuid7(), step_id, tool, name, key, arguments, sha256_hex(arguments))


def _refusal(wish: Wish, owner: Owner) -> str:
    if wish.arguments_hash == owner.arguments_hash:
        return owner.closed
    theirs, ours = (plain(text[:SHOWN]) for text in (owner.arguments, wish.arguments))
    return (
        f"“{wish.name}” already stands for other arguments. {owner} has {theirs} and this step has {ours}."
        " Give another effect another name."
    )


def proceed(changes: Changes, row: StepRow) -> bool | Refusal:
    """Whether a prepared step that names an intent may bring its effect about.

    False where another step does: then its receipt is taken, or it is waited for. A locked intent is left alone, like
    everything that a claim finds locked.
    """
    locked = statements.fetch(_LOCK, key=row.idempotency_key)
    if not locked:
        return False
    (owner,) = _owners(_OWNER_OF_LOCKED, id=locked[0][0])
    if owner.closed:
        _stop_waiting(changes, row)
        return Refusal(CaseReason.PLAN_INVALID, owner.closed)
    if owner.status == StepStatus.VERIFIED:
        return _take_receipt(changes, row, owner)
    if owner.step_id != row.id and owner.gives_way:
        statements.change(_PASS_ON, owner=row.id, id=owner.intent_id)
        changes.note(row, "take_intent", details=_named(owner))
    elif owner.step_id != row.id:
        _wait(changes, row, owner)
        return False
    _stop_waiting(changes, row)
    return True


def order(row: StepRow, team_id: uuid.UUID) -> tuple[str, str, str]:
    """In which order the steps of a turn are acted on, so that it takes intents in the order of `take`."""
    if not row.intent_name:
        return ("", "", "")
    return row.intent_name, pinned.tool_version(row.tool_version_id).name, str(team_id)


def _owners(statement: str, **parameters: object) -> list[Owner]:
    return [Owner(*found) for found in statements.fetch(statement, **parameters)]


def _named(owner: Owner) -> dict[str, str]:
    return {"intent": owner.intent_name, "step": owner.step_name, "workflow": str(owner.workflow_id)}


def _wait(changes: Changes, row: StepRow, owner: Owner) -> None:
    if row.waits_for_id is None:
        changes.touch(row).waits_for_id = owner.intent_id
        changes.note(row, "wait_for_intent", details=_named(owner))


def _stop_waiting(changes: Changes, row: StepRow) -> None:
    if row.waits_for_id is not None:
        changes.touch(row).waits_for_id = None


def _take_receipt(changes: Changes, row: StepRow, owner: Owner) -> bool | Refusal:
    """The effect is there, known as well as its owner knows it (DESIGN.md section 3, "Keys and intents")."""
    ((source, facts, sha256),) = statements.fetch(_RECEIPT, id=owner.receipt_id)
    if sha256_hex(facts) != sha256:
        return Refusal(CaseReason.RECORD_DAMAGED, f"The stored result of {owner} does not match its hash.")
    evidence = evidence_log.observe(
        row.id, EvidenceKind.INTENT, "taken", json.loads(facts), source=f"{owner}: {source}",
        standing=Standing(owner.standing), fence=row.fence, attempt_number=None, operation_id=owner.operation_id,
        now=changes.now,
    )  # fmt: skip
    changes.observe(evidence)
    changes.touch(row)
    row.receipt_id, row.operation_id, row.standing = evidence.id, owner.operation_id, owner.standing
    row.committed_at = row.verified_at = changes.now
    row.waits_for_id = row.next_at = None
    changes.move(row, StepStatus.VERIFIED, verb="take_receipt", standing=owner.standing, **_named(owner))
    return False
