"""Resume packets: what an agent that starts again has to know, bounded, hashed, and kept as it was issued.

A packet is a function of the records: the same records and budget give the same bytes. It is read from one moment, and
written down afterwards in a transaction of its own, in which nothing of the workflow changes; so issuing one neither
waits for a worker nor makes one wait. Facts are not read again for it, because a request must not wait for the world: a
fact whose declared time is over is named as old, and reading it again is a step like any other.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from checkpoint import audit, clock, queries
from checkpoint.canonical import canonical, sha256_hex
from checkpoint.errors import ActionIncomplete, BudgetTooSmall, NotFound
from checkpoint.models import ResumePacket, Workflow
from checkpoint.packets import packet_contents, packet_records
from checkpoint.packets.packet_budget import LEFT_OUT, Measure, fit
from checkpoint.people import Actor
from checkpoint.permissions import Person, workflows_visible_to
from checkpoint.transactions import one_snapshot, one_transaction

BYTES = "bytes"
DEFAULT_BUDGET, SMALLEST_BUDGET, LARGEST_BUDGET = 16 * 1024, 1024, 64 * 1024


@dataclass(frozen=True)
class Draft:
    """A packet that nobody was given yet. `text` is canonical JSON."""

    workflow_id: UUID
    workflow_version: int
    budget: int
    counted_in: str
    text: str

    @property
    def sha256(self) -> str:
        """Of the text."""
        return sha256_hex(self.text)


def issue(
    workflow_id: UUID,
    *,
    actor: Actor,
    user: Person | None = None,
    budget: int = DEFAULT_BUDGET,
    counted_in: str = BYTES,
) -> ResumePacket:
    """The packet of a workflow as it is now, kept and audited; the one that was issued before, where it is the same.

    Args:
        user: the account in whose name it is asked for, and whose reach counts; None for the machine's operator.
        budget: of the packet's text, in bytes or in tokens.
        counted_in: BYTES, or the name of a tokenizer.

    Raises:
        NotFound: there is no such workflow, or the user does not see it.
        ActionIncomplete: the budget is out of its bounds, or there is no such tokenizer.
        BudgetTooSmall: constraints, decisions that are not made and the next action do not fit.
    """
    draft = preview(workflow_id, user=user, budget=budget, counted_in=counted_in)
    known = ResumePacket.objects.filter(workflow=workflow_id, sha256=draft.sha256).first()
    return known or _keep(draft, actor)


@one_snapshot
def preview(
    workflow_id: UUID, *, user: Person | None = None, budget: int = DEFAULT_BUDGET, counted_in: str = BYTES
) -> Draft:
    """The packet as it would be issued now. Raises as `issue` does."""
    measure = _measure(budget, counted_in)
    records = packet_records.read(_workflow(workflow_id, user))
    packet = _fitted(records, budget, measure)
    left_out = packet_contents.left_unread(records, packet[LEFT_OUT].items())
    text = canonical(packet_contents.in_order(packet | {LEFT_OUT: left_out}))
    return Draft(workflow_id, records.workflow.version, budget, counted_in, text)


def visible_packet(person: Person, workflow_id: UUID, sha256: str) -> ResumePacket:
    """A packet that was issued, by its hash. Raises NotFound."""
    visible = workflows_visible_to(person)
    found = ResumePacket.objects.filter(workflow=workflow_id, workflow__in=visible, sha256=sha256).first()
    if found is None:
        raise NotFound("There is no such packet that you may see.")
    return found


def contents(packet: ResumePacket | Draft) -> dict[str, Any]:
    """The packet as JSON values."""
    value: dict[str, Any] = json.loads(packet.text)
    return value


def old_facts(packet: ResumePacket | Draft, now: datetime) -> list[str]:
    """Ids of the evidence in the packet whose declared time is over."""
    return [evidence for evidence, until in packet_contents.fresh_until(contents(packet)) if until < now]


def _fitted(records: packet_records.PacketRecords, budget: int, measure: Measure) -> dict[str, Any]:
    """With the whole goal, else with its beginning."""
    found = list(packet_contents.pieces(records))
    whole = packet_contents.kept(records, goal_length=len(records.workflow.goal))
    try:
        return fit(whole, found, budget=budget, measure=measure)
    except BudgetTooSmall:
        short = packet_contents.kept(records, goal_length=packet_contents.GOAL_KEPT)
        return fit(short, found, budget=budget, measure=measure)


def _measure(budget: int, counted_in: str) -> Measure:
    if not SMALLEST_BUDGET <= budget <= LARGEST_BUDGET:
        raise ActionIncomplete("budget", f"choose {SMALLEST_BUDGET} to {LARGEST_BUDGET}.")
    if counted_in != BYTES:
        raise ActionIncomplete("counted_in", f"only {BYTES} are counted here.")
    return lambda text: len(text.encode())


def _workflow(workflow_id: UUID, user: Person | None) -> Workflow:
    if user is not None:
        return queries.visible_workflow(user, workflow_id)
    found = Workflow.objects.select_related("policy_version", "submitted_by").defer("input").filter(pk=workflow_id)
    if (workflow := found.first()) is None:
        raise NotFound(f"There is no workflow {workflow_id}.")
    return workflow


@one_transaction
def _keep(draft: Draft, actor: Actor) -> ResumePacket:
    now = clock.now()
    packet, is_new = ResumePacket.objects.get_or_create(
        workflow_id=draft.workflow_id,
        sha256=draft.sha256,
        defaults={
            "workflow_version": draft.workflow_version,
            "budget": draft.budget,
            "counted_in": draft.counted_in,
            "text": draft.text,
            "issued_to": actor.name,
            "issued_at": now,
        },
    )
    if is_new:
        details = {"sha256": draft.sha256, "version": draft.workflow_version, "bytes": len(draft.text.encode())}
        subject = f"resume packet {packet.pk}"
        audit.append([audit.Entry(draft.workflow_id, actor, "issue", subject, details=details)], at=now)
    return packet
