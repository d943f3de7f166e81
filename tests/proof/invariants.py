"""What must hold whatever happens, read from the database and the provider's ledger, never from the code's own word.

The explorer, the simulation and the Hypothesis state machine judge by these laws and no others.
"""

from __future__ import annotations

import json
import uuid
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from django.db.models import Prefetch

from checkpoint import audit, clock
from checkpoint.contracts import RecoveryClass
from checkpoint.gates import start_times
from checkpoint.models import AuditEntry, Case, Step, Workflow
from checkpoint.states import CaseStatus, Standing, StepStatus, WorkflowStatus

UNREAD = (Standing.RECEIPT_ONLY, Standing.ATTESTED)
RUNNABLE = (StepStatus.PLANNED, StepStatus.PREPARED, StepStatus.STARTED, StepStatus.COMMITTED, StepStatus.FAILED)
PASSED = (StepStatus.VERIFIED, StepStatus.SUPERSEDED)
TERMINAL = (WorkflowStatus.COMPLETED, WorkflowStatus.ABANDONED)


@dataclass(frozen=True)
class Violation:
    """One law that does not hold."""

    law: str
    subject: str
    what: str

    def __str__(self) -> str:
        return f"{self.law}: {self.subject}: {self.what}"


class Witness(Protocol):
    """Who knows what really happened."""

    def effects(self, step: Step) -> int:
        """How often the step's effect exists in the outside world, visible or not."""
        ...

    def lied(self, step: Step) -> bool:
        """Whether the provider gave a receipt and did nothing."""
        ...

    def could_be_known(self, case: Case) -> str:
        """How a machine could have known what a person is asked; empty where none could."""
        ...


def violations(workflow_ids: Sequence[uuid.UUID], witness: Witness, *, quiescent: bool) -> list[Violation]:
    """Every violation in these workflows.

    Args:
        quiescent: whatever the machine can do by itself has been done, so that nothing may be left alone.
    """
    steps = Step.objects.select_related(
        "tool_version", "waits_for__owner", "compensates__tool_version"
    ).prefetch_related("attempts", "cases")
    found = []
    for workflow in Workflow.objects.filter(pk__in=workflow_ids).prefetch_related(Prefetch("steps", steps)):
        view = _View(workflow, list(workflow.steps.all()), witness, clock.now())
        laws = _ALWAYS if not quiescent else (*_ALWAYS, nothing_runnable_is_left_alone)
        found += [violation for law in laws for violation in law(view)]
    return found


@dataclass(frozen=True)
class _View:
    workflow: Workflow
    steps: list[Step]
    witness: Witness
    now: datetime

    def broken(self, law: Callable[[_View], Iterator[Violation]], what: str, step: Step | None = None) -> Violation:
        """The violation in words that name the law."""
        subject = f"workflow {self.workflow.pk} ({self.workflow.status})"
        return Violation(law.__name__, f"{subject}, step {step.name} ({step.status})" if step else subject, what)

    def open_cases(self, step: Step) -> list[Case]:
        """The questions about a step that wait for an answer."""
        return [case for case in step.cases.all() if case.status == CaseStatus.OPEN]


def at_most_one_effect_per_key(view: _View) -> Iterator[Violation]:
    """One key, one effect, for ever."""
    for step in view.steps:
        effects = view.witness.effects(step)
        if effects > 1:
            yield view.broken(at_most_one_effect_per_key, f"its effect exists {effects} times", step)


def completed_means_every_effect_exists_once(view: _View) -> Iterator[Violation]:
    """`verified` is about the world. Only what says of itself that nobody read it may rest on a provider's lie."""
    for step in view.steps:
        if step.status != StepStatus.VERIFIED or _is_read(step):
            continue
        shown_as_unread = step.standing in UNREAD and view.witness.lied(step)
        if view.witness.effects(step) != 1 and not shown_as_unread:
            what = f"its effect exists {view.witness.effects(step)} times, its standing says {step.standing}"
            yield view.broken(completed_means_every_effect_exists_once, what, step)
    if view.workflow.status == WorkflowStatus.COMPLETED and any(step.status not in PASSED for step in view.steps):
        yield view.broken(completed_means_every_effect_exists_once, "a step of it is not verified")


def a_failed_step_has_no_effect(view: _View) -> Iterator[Violation]:
    """`failed` means proved not to have happened."""
    for step in view.steps:
        if step.status == StepStatus.FAILED and view.witness.effects(step) and not _is_read(step):
            yield view.broken(a_failed_step_has_no_effect, "its effect exists", step)


def waiting_means_exactly_one_open_question(view: _View) -> Iterator[Violation]:
    """Who waits for a person has asked one question, and whoever asked waits."""
    law = waiting_means_exactly_one_open_question
    for step in view.steps:
        asked = len(view.open_cases(step))
        if asked > 1 or (step.status == StepStatus.UNCERTAIN and asked != 1):
            yield view.broken(law, f"{asked} open questions about it", step)
    asks = any(view.open_cases(step) for step in view.steps)
    if view.workflow.status not in TERMINAL and asks != (view.workflow.status == WorkflowStatus.NEEDS_REVIEW):
        yield view.broken(law, "an open question, and it does not wait" if asks else "it waits, and nobody is asked")


def nothing_runnable_is_left_alone(view: _View) -> Iterator[Violation]:
    """At rest, what is not terminal waits for a person, and nobody holds anything."""
    law = nothing_runnable_is_left_alone
    front = min((step.position for step in view.steps if step.status not in PASSED), default=None)
    for step in view.steps:
        waits = bool(view.open_cases(step)) or view.workflow.status == WorkflowStatus.AWAITING_APPROVAL
        waits = waits or (step.waits_for is not None and _is_asked_about(step.waits_for.owner))
        if step.lease_holder_id is not None:
            yield view.broken(law, f"its lease since {step.lease_until} is nobody's business", step)
        if view.workflow.status not in TERMINAL and step.position == front and step.status in RUNNABLE and not waits:
            yield view.broken(law, "it could run", step)
    if view.workflow.wake_at is not None and view.workflow.wake_at <= view.now:
        yield view.broken(law, f"it was due at {view.workflow.wake_at}")


def a_person_is_asked_only_what_no_machine_could_know(view: _View) -> Iterator[Violation]:
    """The witness knows what could have been known."""
    for step in view.steps:
        for case in step.cases.all():
            how = view.witness.could_be_known(case)
            if how:
                yield view.broken(a_person_is_asked_only_what_no_machine_could_know, f"{case.reason}: {how}", step)


def what_is_undone_had_happened(view: _View) -> Iterator[Violation]:
    """Nothing is undone that never was."""
    for step in view.steps:
        undone = step.compensates
        if undone is not None and view.witness.effects(undone) != 1 and not view.witness.lied(undone):
            times = view.witness.effects(undone)
            yield view.broken(what_is_undone_had_happened, f"the effect that it undoes exists {times} times", step)


def nobody_is_early(view: _View) -> Iterator[Violation]:
    """What waits for a time is not verified before it."""
    for step in view.steps:
        for waited in step.evidence.filter(finding=start_times.FINDING) if step.status == StepStatus.VERIFIED else ():
            until = datetime.fromisoformat(waited.facts_value["until"])
            if step.verified_at is not None and step.verified_at < until:
                yield view.broken(nobody_is_early, f"it was to wait until {until}", step)


def no_more_in_flight_than_allowed(
    workflow_ids: Sequence[uuid.UUID], limits: Mapping[str, int | None]
) -> Iterator[Violation]:
    """Of each tool, over all these workflows: read it at every moment that matters."""
    in_flight = Step.objects.filter(workflow__in=workflow_ids, status=StepStatus.STARTED)
    started = in_flight.values_list("tool_version__name", flat=True)
    for tool, count in Counter(started).items():
        allowed = limits.get(tool)
        if allowed is not None and count > allowed:
            yield Violation("no_more_in_flight_than_allowed", tool, f"{count} of {allowed}")


def fences_only_rise(view: _View) -> Iterator[Violation]:
    """Each attempt is made under a higher fence than all before it, and so is whatever the trail tells of a step."""
    for step in view.steps:
        fences = [attempt.fence for attempt in step.attempts.all()]
        if fences != sorted(set(fences)) or any(fence > step.fence for fence in fences):
            yield view.broken(fences_only_rise, f"attempts under {fences}, the step is at {step.fence}", step)
    for subject, told in _fences_told(view.workflow).items():
        if told != sorted(told):
            yield view.broken(fences_only_rise, f"the trail of {subject} tells {told}")


def the_audit_chain_holds() -> list[Violation]:
    """Of every stream there is; slow, so it is asked once, at the end."""
    return [Violation("the_audit_chain_holds", link.stream, link.problem) for link in audit.broken_links()]


_ALWAYS = (
    at_most_one_effect_per_key,
    completed_means_every_effect_exists_once,
    a_failed_step_has_no_effect,
    waiting_means_exactly_one_open_question,
    a_person_is_asked_only_what_no_machine_could_know,
    what_is_undone_had_happened,
    nobody_is_early,
    fences_only_rise,
)


def _is_read(step: Step) -> bool:
    """A read makes no effect that could be counted; a person's answer is one."""
    contract = step.tool_version.contract(step.variant) if step.variant else None
    return contract is not None and contract.recovery is RecoveryClass.READ_ONLY and not contract.asks


def _is_asked_about(owner: Step) -> bool:
    """Whether who waits for the owner of an intent waits for a person."""
    return owner.cases.filter(status=CaseStatus.OPEN).exists()


def _fences_told(workflow: Workflow) -> dict[str, list[int]]:
    told: dict[str, list[int]] = defaultdict(list)
    for entry in AuditEntry.objects.filter(stream_id=workflow.pk).exclude(verb="refuse_late_report").order_by("seq"):
        content = json.loads(entry.text)
        fence = (content.get("details") or {}).get("fence")
        if fence is not None:
            told[content["subject"]].append(fence)
    return told
