"""The sender's verbs: take a notice that is due, and record how sending it went. Nothing is sent in here.

A taken notice has a lease. Where its sender dies, whether before or after the receiver got it, the notice is due again
when the lease ends; so none is lost, and receivers tell a second copy by its id, which is always the same.
"""

from __future__ import annotations

import uuid
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.contrib.auth.models import User
from django.core.mail import mailers
from django.db.models import QuerySet

from approvals.models import Delivery, Notice, NoticeSettings, Signature
from approvals.notifying.notice_rules import (
    CALLS_FOR_AN_ANSWER,
    UNSETTLED,
    ChannelFormat,
    NoticeKind,
    NoticeState,
    PersonFacts,
    Preferences,
    Send,
    Skip,
    Verdict,
    Wait,
    pause_after,
    verdict_on_channel,
    verdict_on_person,
)
from approvals.permissions import DECIDE_CASE, RECEIVE_ESCALATIONS
from approvals.requests import refusal_of
from checkpoint import clock
from checkpoint.clock import Now
from checkpoint.permissions import workflows_visible_to
from checkpoint.states import ApprovalStatus, CaseStatus
from checkpoint.transactions import one_transaction

SEND_SECONDS = 20.0  # total, for one try
LEASE = timedelta(seconds=3 * SEND_SECONDS)
MAIL = "mail"
DETAIL_LIMIT = 500


@dataclass(frozen=True)
class Mailbox:
    """A person's e-mail address."""

    address: str


@dataclass(frozen=True)
class Webhook:
    """A team channel."""

    format: ChannelFormat
    url: str
    secret_name: str


@dataclass(frozen=True)
class Taken:
    """A notice to send now.

    Attributes:
        destination: what to leave alone for a while when sending fails: MAIL, or the channel.
        at: database time at which this try began.
    """

    notice_id: uuid.UUID
    delivery_id: uuid.UUID
    destination: str
    to: Mailbox | Webhook
    at: datetime


@dataclass(frozen=True)
class Delivered:
    """The receiver took it."""

    detail: str = ""


@dataclass(frozen=True)
class NotDelivered:
    """It did not arrive, or nobody knows whether it did.

    Attributes:
        permanent: trying again is of no use.
        destination_down: others for the same destination would fare no better now.
        asked_for: how long the receiver wants to be left alone.
    """

    detail: str
    permanent: bool = False
    destination_down: bool = True
    asked_for: timedelta = timedelta(0)


def count_due(limit: int) -> int:
    """How many notices a sender could take now; counts up to the limit."""
    return _due(frozenset())[:limit].count()


@one_transaction
def take(*, resting: AbstractSet[str] = frozenset()) -> Taken | Verdict | None:
    """Takes the notice that has been due for longest and leases it to the caller; skips those that others hold.

    Args:
        resting: destinations to leave alone.

    Returns:
        The notice; or the verdict by which one was put off or not sent at all; or None when nothing is due.
    """
    due = _due(resting).order_by("due_at").select_for_update(skip_locked=True).values_list("pk", flat=True)[:1]
    if not due:
        return None
    # Everything else is read after the lock was taken: rights, wishes and whether the question is still open.
    told = ("person", "channel", "case", "approval__workflow")
    payloads = ("case__findings", "approval__workflow__input")
    notice = Notice.objects.select_related(*told).defer(*payloads).get(pk=due[0])
    now = clock.now()
    verdict = _verdict(notice, now)
    if isinstance(verdict, Send):
        return _lease(notice, now)
    if isinstance(verdict, Wait):
        Notice.objects.filter(pk=notice.pk).update(state=NoticeState.WAITING, due_at=verdict.until)
    else:
        _settle(notice.pk, NoticeState.SKIPPED, verdict.reason, now)
    return verdict


@one_transaction
def record(delivery_id: uuid.UUID, ending: Delivered | NotDelivered) -> None:
    """Writes how a try went.

    That it was delivered counts whoever says so; that it was not, only from the notice's newest try: a sender that
    comes back after its lease has nothing to say about what another one does now.
    """
    delivery = Delivery.objects.get(pk=delivery_id)
    notice = Notice.objects.select_for_update().get(pk=delivery.notice_id)
    now, detail = clock.now(), ending.detail.replace("\0", "")[:DETAIL_LIMIT]
    delivered = isinstance(ending, Delivered)
    Delivery.objects.filter(pk=delivery.pk).update(ended_at=now, delivered=delivered, detail=detail)
    if isinstance(ending, Delivered):
        if notice.state != NoticeState.DELIVERED:
            _settle(notice.pk, NoticeState.DELIVERED, "", now)
    elif notice.state == NoticeState.SENDING and notice.attempt_count == delivery.number:
        _fail(notice, ending, detail, now)


def _due(resting: AbstractSet[str]) -> QuerySet[Notice]:
    found = Notice.objects.filter(state__in=UNSETTLED, due_at__lte=Now())
    if MAIL in resting:
        found = found.filter(channel__isnull=False)
    if channels := resting - {MAIL}:
        found = found.exclude(recipient__in=channels)
    return found


def _verdict(notice: Notice, now: datetime) -> Verdict:
    kind, still_open = NoticeKind(notice.kind), _still_open(notice, now)
    if notice.channel is not None:
        channel = notice.channel
        return verdict_on_channel(kind, still_open=still_open, enabled=channel.enabled, wanted=kind in channel.kinds)
    if notice.person is None or not notice.person.is_active:
        return Skip("the account is closed")
    return verdict_on_person(_person_facts(notice, notice.person, kind, still_open=still_open), now=now)


def _person_facts(notice: Notice, person: User, kind: NoticeKind, *, still_open: bool) -> PersonFacts:
    return PersonFacts(
        kind=kind,
        still_open=still_open,
        may_see=workflows_visible_to(person).filter(pk=notice.workflow_id).exists(),
        may_act=_may_act(notice, person, kind),
        address=person.email,
        mail_works="default" in mailers,
        preferences=_preferences(person),
    )


def _still_open(notice: Notice, now: datetime) -> bool:
    if notice.approval is not None:
        return notice.approval.status == ApprovalStatus.PENDING and notice.approval.expires_at > now
    return notice.case is not None and notice.case.status == CaseStatus.OPEN


def _may_act(notice: Notice, person: User, kind: NoticeKind) -> bool:
    """Whether the person may do what the notice calls for; one that only tells calls for nothing."""
    if kind is NoticeKind.ESCALATION:
        return person.has_perm(RECEIVE_ESCALATIONS)
    if kind not in CALLS_FOR_AN_ANSWER:
        return True
    if notice.approval is not None:
        return not refusal_of(notice.approval, person)
    signed = kind is NoticeKind.SECOND_PERSON and Signature.objects.filter(case=notice.case, person=person).exists()
    return person.has_perm(DECIDE_CASE) and not signed


def _preferences(person: User) -> Preferences:
    wishes = NoticeSettings.objects.filter(person=person).first()
    return wishes.preferences if wishes else Preferences()


def _lease(notice: Notice, now: datetime) -> Taken:
    number = notice.attempt_count + 1
    Notice.objects.filter(pk=notice.pk).update(state=NoticeState.SENDING, attempt_count=number, due_at=now + LEASE)
    delivery = Delivery.objects.create(notice=notice, number=number, started_at=now)
    if notice.channel is None:
        to: Mailbox | Webhook = Mailbox(notice.person.email if notice.person else "")
    else:
        to = Webhook(ChannelFormat(notice.channel.format), notice.channel.url, notice.channel.secret_name)
    destination = MAIL if notice.channel is None else notice.recipient
    return Taken(notice.pk, delivery.pk, destination, to, now)


def _fail(notice: Notice, ending: NotDelivered, detail: str, now: datetime) -> None:
    if ending.permanent or notice.attempt_count >= notice.attempts_allowed:
        _settle(notice.pk, NoticeState.FAILED, detail, now)
        return
    due_at = now + pause_after(notice.attempt_count, asked_for=ending.asked_for)
    Notice.objects.filter(pk=notice.pk).update(state=NoticeState.WAITING, due_at=due_at, detail=detail)


def _settle(notice_id: uuid.UUID, state: NoticeState, detail: str, now: datetime) -> None:
    Notice.objects.filter(pk=notice_id).update(state=state, settled_at=now, detail=detail)
