"""What a policy would mean for the work at hand: open steps that it would judge otherwise, and one workflow's steps."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from uuid import UUID

from django.db.models import QuerySet

from approvals.policies import PolicyDocument, plan_approval, rule
from approvals.rules.policy_words import differences
from checkpoint.gates.rulings import ApprovalRule, Ruling, StepDescription, describe
from checkpoint.models import Step, Workflow
from checkpoint.states import STEP_TERMINAL, WORKFLOW_TERMINAL
from checkpoint.turns import pinned

MOST_STEPS = 5_000
WORKFLOWS_SHOWN = 5
_BATCH = 200  # steps read at once: each may carry 256 KiB of arguments


@dataclass
class Change:
    """Open steps of one tool about which two policies differ in the same way.

    Attributes:
        differences: what changes, a sentence each.
        workflows: the workflows of these steps, newest first.
    """

    tool: str
    differences: tuple[str, ...]
    steps: int = 0
    workflows: list[UUID] = field(default_factory=list)

    @property
    def shown(self) -> list[UUID]:
        """The newest of its workflows."""
        return self.workflows[:WORKFLOWS_SHOWN]


@dataclass(frozen=True)
class Preview:
    """The open work that a policy judges otherwise.

    Attributes:
        looked_at: open steps that were compared, the newest first.
        complete: whether these are all there are.
    """

    changes: Sequence[Change]
    looked_at: int
    complete: bool

    @property
    def steps(self) -> int:
        """Steps that are judged otherwise."""
        return sum(change.steps for change in self.changes)

    @property
    def workflows(self) -> int:
        """Workflows with such a step."""
        return len({workflow for change in self.changes for workflow in change.workflows})


@dataclass(frozen=True)
class JudgedStep:
    """A step with what a policy says about it."""

    position: int
    name: str
    status: str
    description: StepDescription
    ruling: Ruling


@dataclass(frozen=True)
class Trial:
    """A workflow under a policy; `approval` is that of the whole plan."""

    steps: Sequence[JudgedStep]
    approval: ApprovalRule | None


def preview(before: PolicyDocument, after: PolicyDocument, workflows: QuerySet[Workflow]) -> Preview:
    """What changes for the open steps of these workflows when `after` takes the place of `before`.

    At most MOST_STEPS steps are compared.
    """
    running = workflows.exclude(status__in=WORKFLOW_TERMINAL)
    steps = Step.objects.filter(workflow__in=running).exclude(status__in=STEP_TERMINAL)
    ids = list(steps.order_by("-workflow_id", "position", "id").values_list("pk", flat=True)[: MOST_STEPS + 1])
    with_arguments = any(each.when.condition for document in (before, after) for each in document.rules)
    changes: dict[tuple[str, tuple[str, ...]], Change] = {}
    for step in _in_batches(ids[:MOST_STEPS], with_arguments=with_arguments):
        description = _describe(step, step.arguments if with_arguments else None)
        found = differences(rule(before, description), rule(after, description))
        if found:
            _count(changes.setdefault((description.tool, found), Change(description.tool, found)), step.workflow_id)
    ordered = sorted(changes.values(), key=lambda change: -change.steps)
    return Preview(ordered, min(len(ids), MOST_STEPS), complete=len(ids) <= MOST_STEPS)


def _count(change: Change, workflow_id: UUID) -> None:
    """The steps of one workflow come one after the other."""
    change.steps += 1
    if change.workflows[-1:] != [workflow_id]:
        change.workflows.append(workflow_id)


def trial(document: PolicyDocument, workflow: Workflow) -> Trial:
    """What a policy says about each step of a workflow, in the plan's order."""
    ids = list(workflow.steps.order_by("position", "name").values_list("pk", flat=True))
    judged = [
        JudgedStep(step.position, step.name, step.status, description, rule(document, description))
        for step in _in_batches(ids, with_arguments=True)
        for description in [_describe(step, step.arguments)]
    ]
    return Trial(judged, plan_approval((step.description, step.ruling) for step in judged))


def _in_batches(ids: Sequence[UUID], *, with_arguments: bool) -> Iterator[Step]:
    """The steps with these ids, in their order."""
    unread = ("template",) if with_arguments else ("template", "arguments")
    for start in range(0, len(ids), _BATCH):
        batch = ids[start : start + _BATCH]
        found = Step.objects.select_related("workflow__team").defer(*unread, "workflow__input", "workflow__goal")
        steps = found.in_bulk(batch)
        yield from _present(steps.get(each) for each in batch)


def _present(steps: Iterable[Step | None]) -> Iterator[Step]:
    yield from (step for step in steps if step is not None)


def _describe(step: Step, arguments: str | None) -> StepDescription:
    tool_version = pinned.tool_version(step.tool_version_id)
    workflow = step.workflow
    return describe(
        tool=tool_version.name,
        variants=tool_version.variants,
        variant=step.variant,
        kind=workflow.kind,
        team=workflow.team.slug,
        arguments=arguments,
    )
