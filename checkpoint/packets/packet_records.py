"""What is read of one workflow for its resume packet: bounded, and without the payloads that no packet holds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from uuid import UUID

from checkpoint import queries
from checkpoint.models import Approval, Artifact, Case, Evidence, EvidenceKind, Step, ToolVersion, Waiver, Workflow
from checkpoint.states import ApprovalStatus, CaseStatus, StepStatus

MOST_STEPS = 2_000  # with their states; of the rest it is said that they are there
MOST_PROVED = 300  # steps with their evidence, the newest
MOST_ASKED = 500
MOST_ARTIFACTS = 500

_DONE = (StepStatus.COMMITTED, StepStatus.VERIFIED)
_ASKED = (ApprovalStatus.PENDING, ApprovalStatus.RETURNED)
_PROVES = (EvidenceKind.VERIFICATION, EvidenceKind.ATTESTATION)
_A_FILE = "file"  # brought to a case by a person; it is among the artifacts


@dataclass(frozen=True)
class PacketRecords:
    """All that a packet is made of, as it was at one moment.

    Attributes:
        steps: in the plan's order; those that an edit put aside are among them.
        evidence: by step, what its outcome stands on.
        waived: the steps without which the plan goes on, by a recorded decision.
        undone_by: by step, the newest step that undoes its effect.
        more: how many further steps, questions and artifacts there are than were read, by the packet's section.
    """

    workflow: Workflow
    steps: Sequence[Step]
    tools: Mapping[UUID, ToolVersion]
    evidence: Mapping[UUID, Sequence[Evidence]]
    cases: Sequence[Case]
    requests: Sequence[Approval]
    artifacts: Sequence[Artifact]
    waived: Set[UUID]
    undone_by: Mapping[UUID, Step]
    more: Mapping[str, int]


def read(workflow: Workflow) -> PacketRecords:
    """The records of a workflow. The caller sees to it that all are of one moment."""
    steps = workflow.steps.defer("template", "arguments").order_by("position", "name", "id")
    cases = workflow.cases.filter(status=CaseStatus.OPEN).select_related("step").defer("findings", *_PAYLOADS)
    requests = workflow.approvals.filter(part_of=None, status__in=_ASKED).select_related("step").defer(*_PAYLOADS)
    artifacts = workflow.artifacts.order_by("id")
    read_steps = list(steps[:MOST_STEPS])
    more = {
        "plan": max(steps.count() - MOST_STEPS, 0),
        "unresolved": max(cases.count() - MOST_ASKED, 0) + max(requests.count() - MOST_ASKED, 0),
        "artifacts": max(artifacts.count() - MOST_ARTIFACTS, 0),
    }
    return PacketRecords(
        workflow=workflow,
        steps=read_steps,
        tools=ToolVersion.objects.defer("schema").in_bulk({step.tool_version_id for step in read_steps}),
        evidence=_evidence(workflow),
        cases=list(cases.order_by("opened_at", "id")[:MOST_ASKED]),
        requests=list(requests.order_by("requested_at", "id")[:MOST_ASKED]),
        artifacts=list(artifacts[:MOST_ARTIFACTS]),
        waived=set(Waiver.objects.filter(step__workflow=workflow).values_list("step_id", flat=True)),
        undone_by=queries.undone_by(read_steps),
        more={section: count for section, count in more.items() if count},
    )


_PAYLOADS = ("step__arguments", "step__template")


def _evidence(workflow: Workflow) -> dict[UUID, list[Evidence]]:
    """The receipt, and beside it the newest reading of the outcome and the newest word of a person."""
    done = workflow.steps.filter(status__in=_DONE).order_by("-position", "-name", "-id")
    receipts = dict(done.values_list("id", "receipt_id")[:MOST_PROVED])
    beside = Evidence.objects.filter(step__in=list(receipts), kind__in=_PROVES).exclude(pk__in=receipts.values())
    newest = beside.exclude(finding=_A_FILE).order_by("step_id", "kind", "-id").distinct("step_id", "kind")
    found: dict[UUID, list[Evidence]] = {}
    for each in (*Evidence.objects.filter(pk__in=receipts.values()), *newest):
        found.setdefault(each.step_id, []).append(each)
    return found
