"""What answers to one request share: its locked rows, and what becomes of the step that is not allowed to run."""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID

from django.contrib.auth.models import User
from django.db.models import Q

from checkpoint import reasons, transitions
from checkpoint.errors import DecisionIncomplete, NotFound
from checkpoint.models import Approval, Step
from checkpoint.people import Actor
from checkpoint.permissions import workflows_visible_to
from checkpoint.rows import step_rows
from checkpoint.states import OPEN_REQUESTS, StepStatus
from checkpoint.transitions import WINDS_DOWN, Changes
from checkpoint.turns import verdicts

REASON_LIMIT = 4000
# Also a step that was sent: what waits is then a further send with the same key.
_CAN_BE_KEPT = (*WINDS_DOWN, StepStatus.STARTED)


@dataclass(frozen=True)
class LockedRequest:
    """What one answer is about, locked: the row that is asked about comes first, then the other steps of its plan."""

    shares: list[Approval]

    @property
    def asked_about(self) -> Approval:
        """The row that people answer."""
        return self.shares[0]

    @property
    def open_shares(self) -> list[Approval]:
        """Those that are asked for, or given and not used."""
        return [share for share in self.shares if share.status in OPEN_REQUESTS]

    @property
    def unsent_steps(self) -> list[Step]:
        """The steps that wait for it and can still be kept from running."""
        return [share.step for share in self.open_shares if share.step.status in _CAN_BE_KEPT]


def lock(approval_id: UUID, person: User, actor: Actor) -> tuple[Changes, LockedRequest]:
    """Locks the workflow, then the request. Raises NotFound where the person does not see it."""
    found = Approval.objects.filter(pk=approval_id, workflow__in=workflows_visible_to(person)).first()
    if found is None:
        raise NotFound(f"There is no request for approval {approval_id} that you may see.")
    changes = transitions.lock([found.workflow_id], actor=actor)
    asked_about = found.part_of_id or found.pk
    shares = Approval.objects.filter(Q(pk=asked_about) | Q(part_of=asked_about)).select_for_update(of=("self",))
    locked = shares.select_related("workflow", "step").defer("workflow__input", "step__arguments", "step__template")
    return changes, LockedRequest(sorted(locked, key=lambda share: share.part_of_id is not None))


def complete_reason(text: str) -> str:
    """The reason as it is kept. Raises DecisionIncomplete where there is none, or it is too long."""
    reason = text.strip()
    wanted = f"say in at most {REASON_LIMIT} characters why; it is kept in the audit trail."
    if found := reasons.problem(reason, wanted=wanted, limit=REASON_LIMIT):
        raise DecisionIncomplete(f"reason: {found}")
    return reason


def how_it_ended(approval: Approval) -> str:
    """Who answered what, or what else became of it, as a sentence."""
    last = approval.decisions.order_by("-decided_at").first()
    if last is None or approval.closing:
        return f"This request is {approval.status}: {approval.closing or 'nobody answered'}."
    return (
        f"This request is {approval.status}: {last.person_name} answered “{last.kind}” at"
        f" {last.decided_at:%Y-%m-%d %H:%M:%S} UTC: {last.reason}"
    )


def end_step(changes: Changes, step: Step, why: str) -> None:
    """What is not allowed does not run, nor does what follows it; what did happen stays."""
    verdicts.end_unallowed(changes, step_rows.of_ids([step.pk])[step.pk], why)
