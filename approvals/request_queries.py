"""Reads for those who allow: one request with exactly what it would let run, and where that stands in its plan."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from uuid import UUID

from django.db.models import Prefetch, Q, QuerySet

from approvals import signatures, step_up
from approvals.models import Decision
from checkpoint.canonical import sha256_hex
from checkpoint.contracts import Contract
from checkpoint.errors import NotFound, RecordDamaged
from checkpoint.gates import step_rulings
from checkpoint.gates.approval_requests import hash_of_plan
from checkpoint.gates.rulings import Ruling
from checkpoint.models import Approval, Evidence, Step, Workflow
from checkpoint.permissions import Person, workflows_visible_to
from checkpoint.turns import pinned

OUTLINED = 200


@dataclass(frozen=True)
class Share:
    """One step that a request would let run.

    Attributes:
        text: what is allowed, whole: the step's arguments, or while they wait for earlier results their template.
        intact: whether the text is what was hashed when it was asked for.
    """

    approval: Approval
    step: Step
    text: str
    is_template: bool
    intact: bool

    @property
    def contract(self) -> Contract | None:
        """The promises that hold for the arguments; None before they are there."""
        return self.step.tool_version.contract(self.step.variant) if self.step.variant else None


def requests_visible_to(person: Person) -> QuerySet[Approval]:
    """The requests about workflows that the person sees, one for each plan."""
    return Approval.objects.filter(workflow__in=workflows_visible_to(person), part_of=None)


def visible_request(person: Person, approval_id: UUID) -> Approval:
    """One request with its step, workflow and answers. Raises NotFound, also for a step's share of a plan's request."""
    found = requests_visible_to(person).select_related(
        "step", "step__tool_version", "workflow", "workflow__team", "policy_version"
    )
    answers = Prefetch("decisions", Decision.objects.order_by("decided_at"))
    try:
        return found.defer("workflow__input").prefetch_related(answers).get(pk=approval_id)
    except Approval.DoesNotExist:
        raise NotFound(f"There is no request for approval {approval_id} that you may see.") from None


def shares_of(request: Approval) -> list[Share]:
    """What the request would let run, in the plan's order."""
    rows = Approval.objects.filter(Q(pk=request.pk) | Q(part_of=request)).select_related("step", "step__tool_version")
    shares = [_share(row) for row in rows.defer("step__tool_version__schema")]
    return sorted(shares, key=lambda share: (share.step.position, share.step.name))


def _share(approval: Approval) -> Share:
    step = approval.step
    by_template = sha256_hex(step.template) == approval.arguments_hash
    text = step.template if by_template or step.arguments is None else step.arguments
    return Share(
        approval=approval,
        step=step,
        text=text,
        is_template=by_template and step.arguments != step.template,
        intact=sha256_hex(text) == approval.arguments_hash and step.tool_version_id == approval.tool_version_id,
    )


def intact(request: Approval, shares: list[Share]) -> bool:
    """Whether what is shown is all that was asked for, and exactly that."""
    if not all(share.intact for share in shares):
        return False
    ordered = sorted((share.approval for share in shares), key=lambda one: one.pk != request.pk)
    named = [(one.step.name, one.arguments_hash, one.tool_version_id) for one in ordered]
    return request.plan_hash in ("", hash_of_plan(request.policy_version_id, named))


def ruling_on(share: Share, workflow: Workflow) -> Ruling | None:
    """What the policy said that made it ask; None where that cannot be read any more."""
    arguments = None if share.is_template else share.step.arguments
    description = step_rulings.describe_stored(share.step, workflow, arguments)
    try:
        return pinned.ruling(share.approval.policy_version_id, description)
    except RecordDamaged:
        return None


def wants_step_up(shares: Iterable[Share], workflow: Workflow) -> bool:
    """Whether the policy in force wants whoever answers to have authenticated again. Raises as `step_up.wanted`."""
    steps = (step_rulings.describe_stored(share.step, workflow, share.step.arguments) for share in shares)
    return step_up.wanted(signatures.in_force(), steps)


def outline(workflow: Workflow) -> list[Step]:
    """The workflow's first OUTLINED steps in the plan's order, without payloads; each has `newest_evidence`."""
    evidence = Evidence.objects.defer("facts").order_by("-id")
    steps = workflow.steps.select_related("tool_version").defer("arguments", "template", "tool_version__schema")
    newest = Prefetch("evidence", evidence[:1], to_attr="newest_evidence")
    return list(steps.prefetch_related(newest).order_by("position", "name")[:OUTLINED])
