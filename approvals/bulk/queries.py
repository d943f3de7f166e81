"""Reads for bulk jobs: which a person sees, and their items with what a decision needs, without large payloads."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from uuid import UUID

from django.db.models import Case as Either
from django.db.models import Q, QuerySet, When
from django.db.models.functions import Coalesce, Length

from approvals.bulk.rules import ARGUMENTS_SHOWN, Facts
from approvals.models import BulkItem, BulkJob
from checkpoint.canonical import sha256_hex
from checkpoint.contracts import Contract, Reversibility
from checkpoint.errors import NotFound
from checkpoint.models import Approval, Case, Step
from checkpoint.permissions import VIEW_ALL_WORKFLOWS, Person, workflows_visible_to
from checkpoint.queries import PAGE_SIZE, Page


def jobs_visible_to(person: Person) -> QuerySet[BulkJob]:
    """The person's own jobs; every job for whoever sees every workflow."""
    if not person.is_active:
        return BulkJob.objects.none()
    if person.has_perm(VIEW_ALL_WORKFLOWS):
        return BulkJob.objects.all()
    return BulkJob.objects.filter(person=person.pk)


def job_visible_to(person: Person, job_id: UUID) -> BulkJob:
    """One job. Raises NotFound."""
    found = jobs_visible_to(person).filter(pk=job_id).first()
    if found is None:
        raise NotFound(f"There is no bulk job {job_id} that you may see.")
    return found


def newest_jobs(person: Person, *, before: UUID | None = None) -> Page[BulkJob]:
    """The newest jobs that the person sees, those prepared before job `before`."""
    found = jobs_visible_to(person)
    last = found.filter(pk=before).first() if before else None
    if last is not None:
        found = found.filter(Q(frozen_at__lt=last.frozen_at) | Q(frozen_at=last.frozen_at, pk__lt=last.pk))
    rows = list(found.order_by("-frozen_at", "-pk")[: PAGE_SIZE + 1])
    return Page(rows[:PAGE_SIZE], rows[PAGE_SIZE - 1].pk if len(rows) > PAGE_SIZE else None)


@dataclass(frozen=True)
class Listed:
    """One item with the case or request that it is about.

    Attributes:
        text: the arguments, or the template of those not resolved yet; None where they are too long for a list.
        characters: how long they are.
    """

    item: BulkItem
    about: Case | Approval
    text: str | None
    characters: int

    @property
    def step(self) -> Step:
        """The step whose effect is in question."""
        return self.about.step

    @cached_property
    def contract(self) -> Contract | None:
        """The promises that the step pinned; None before a variant was chosen."""
        return self.step.tool_version.contract(self.step.variant) if self.step.variant else None

    @property
    def reversibility(self) -> str:
        """As the contract says; "unknown" without one."""
        return self.contract.reversibility.value if self.contract else "unknown"

    @property
    def facts(self) -> Facts:
        """What the rules for bulk look at."""
        return Facts(
            irreversible=self.reversibility in (Reversibility.IRREVERSIBLE, "unknown"),
            whole_plan=isinstance(self.about, Approval) and bool(self.about.plan_hash),
            characters=self.characters,
            intact=not (self.text and self.step.arguments_hash) or sha256_hex(self.text) == self.step.arguments_hash,
        )


def items(job: BulkJob) -> QuerySet[BulkItem]:
    """The job's items, to be read by `listed`, in their order."""
    about = job.noun.value
    text = Coalesce(f"{about}__step__arguments", f"{about}__step__template")
    payloads = ["step__arguments", "step__template", "step__tool_version__schema"]
    payloads += ["workflow__goal", "workflow__constraints", "workflow__input"]
    payloads += ["findings"] if about == "case" else []
    return (
        BulkItem.objects.filter(job=job)
        .select_related(f"{about}__step__tool_version", f"{about}__workflow__team", "decision")
        .defer(*(f"{about}__{payload}" for payload in payloads))
        .annotate(characters=Length(text))
        .annotate(text=Either(When(characters__lte=ARGUMENTS_SHOWN, then=text)))
        .prefetch_related(*(["approval__decisions"] if about == "approval" else []))
        .order_by("number")
    )


def listed(found: QuerySet[BulkItem]) -> Iterator[Listed]:
    """The items of `items`, with what they are about."""
    for item in found:
        about = item.case or item.approval
        assert about is not None
        if item.text is not None and about.step.arguments_hash:  # type: ignore[attr-defined]  # an annotation
            about.step.arguments = item.text  # type: ignore[attr-defined]  # not fetched a second time
        yield Listed(item, about, item.text, item.characters)  # type: ignore[attr-defined]  # annotations


def visible_workflow_ids(person: Person, job: BulkJob) -> set[UUID]:
    """The workflows of the job's items that the person sees now; a team may have been left meanwhile."""
    about = job.noun.value
    of_items = BulkItem.objects.filter(job=job).values(f"{about}__workflow")
    return set(workflows_visible_to(person).filter(pk__in=of_items).values_list("pk", flat=True))
