"""Reads of notices for those who look after them."""

from __future__ import annotations

import uuid

from django.db.models import F, Q, QuerySet

from approvals.models import Notice
from approvals.permissions import ADMINISTER_NOTICES
from checkpoint.errors import NotFound
from checkpoint.permissions import Person, require, workflows_visible_to
from checkpoint.queries import PAGE_SIZE, Page


def notices_visible_to(person: Person) -> QuerySet[Notice]:
    """The notices about the workflows that the person sees."""
    return Notice.objects.filter(workflow__in=workflows_visible_to(person))


def notice_page(person: Person, *, state: str = "", before: uuid.UUID | None = None) -> Page[Notice]:
    """The newest notices, older than notice `before`; only those in `state` where one is given.

    Raises:
        Forbidden: the person does not look after notices.
    """
    require(person, ADMINISTER_NOTICES, action="see who was told what")
    found = notices_visible_to(person)
    if state:
        found = found.filter(state=state)
    last = Notice.objects.filter(pk=before).first() if before else None
    if last is not None:
        found = found.filter(Q(created_at__lt=last.created_at) | Q(created_at=last.created_at, pk__lt=last.pk))
    rows = list(_with_recipient(found).order_by("-created_at", "-id")[: PAGE_SIZE + 1])
    return Page(rows[:PAGE_SIZE], rows[PAGE_SIZE - 1].pk if len(rows) > PAGE_SIZE else None)


def visible_notice(person: Person, notice_id: uuid.UUID) -> Notice:
    """One notice with its deliveries. Raises NotFound, and Forbidden as `notice_page` does."""
    require(person, ADMINISTER_NOTICES, action="see who was told what")
    found = _with_recipient(notices_visible_to(person)).prefetch_related("deliveries").filter(pk=notice_id).first()
    if found is None:
        raise NotFound(f"There is no notice {notice_id} that you may see.")
    return found


def _with_recipient(notices: QuerySet[Notice]) -> QuerySet[Notice]:
    return notices.select_related("workflow__team", "case", "approval__step", "channel").annotate(
        person_name=F("person__username")
    ).only(
        *(field.name for field in Notice._meta.concrete_fields),
        "workflow__kind", "workflow__team__name", "case__reason", "approval__step__name", "channel__name",
    )  # fmt: skip
