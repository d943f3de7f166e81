"""A person changes how that person is told: one transaction, audited. Nobody changes it for somebody else."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import time
from zoneinfo import available_timezones

from django.contrib.auth.models import User
from django.core.exceptions import ValidationError
from django.core.validators import validate_email

from approvals.models import NoticeSettings
from approvals.notifying.notice_rules import NoticeKind
from checkpoint import audit
from checkpoint.errors import Fault, SubmissionInvalid
from checkpoint.people import Actor
from checkpoint.transactions import one_transaction


@dataclass(frozen=True)
class Wishes:
    """What a person asks for, as typed.

    Attributes:
        address: where e-mail goes; empty for nowhere.
        kinds: what the person wants to be told by e-mail; everything else is muted.
        quiet_from, quiet_until: wall-clock times such as 22:00; both empty for no quiet hours.
    """

    address: str
    email: bool
    kinds: Collection[str]
    quiet_from: str
    quiet_until: str
    time_zone: str


def settings_of(person: User) -> NoticeSettings:
    """The person's settings, or the usual ones where there are none yet."""
    return NoticeSettings.objects.filter(person=person).first() or NoticeSettings(person=person)


@one_transaction
def change(wishes: Wishes, *, person: User, channel: str) -> None:
    """Stores a person's wishes; they count for every notice that is not sent yet.

    Raises:
        SubmissionInvalid: all that is wrong with them; nothing was stored.
    """
    begins, ends = _time(wishes.quiet_from), _time(wishes.quiet_until)
    if faults := list(_faults(wishes, begins, ends)):
        raise SubmissionInvalid(faults)
    muted = [kind.value for kind in NoticeKind if kind not in wishes.kinds]
    stored, _ = NoticeSettings.objects.update_or_create(
        person=person,
        defaults={
            "email": wishes.email,
            "muted": muted,
            "quiet_from": begins,
            "quiet_until": ends,
            "time_zone": wishes.time_zone,
        },
    )
    account = User.objects.get(pk=person.pk)
    if account.email != wishes.address:
        account.email = wishes.address
        account.save(update_fields=["email"])
    _audit(stored, Actor(person.get_username(), channel))


def _faults(wishes: Wishes, begins: time | None, ends: time | None) -> list[Fault]:
    faults = []
    if wishes.address:
        try:
            validate_email(wishes.address)
        except ValidationError:
            faults.append(Fault("/address", "is no e-mail address; write it like ada@example.com, or leave it empty"))
    if (begins is None) != (wishes.quiet_from == "") or (ends is None) != (wishes.quiet_until == ""):
        faults.append(Fault("/quiet_from", "times are written like 22:00"))
    elif (begins is None) != (ends is None):
        faults.append(Fault("/quiet_from", "quiet hours have a beginning and an end; fill in both or neither"))
    elif begins is not None and begins == ends:
        faults.append(Fault("/quiet_from", "quiet hours that begin when they end have no length; switch e-mail off"))
    if wishes.time_zone not in available_timezones():
        faults.append(Fault("/time_zone", "is no time zone; write it like Europe/Berlin, or UTC"))
    return faults


def _time(text: str) -> time | None:
    try:
        return time.fromisoformat(text).replace(tzinfo=None)
    except ValueError:
        return None


def _audit(stored: NoticeSettings, actor: Actor) -> None:
    quiet = f"{stored.quiet_from:%H:%M}-{stored.quiet_until:%H:%M} {stored.time_zone}" if stored.quiet_from else ""
    details = {"email": stored.email, "muted": stored.muted, "quiet_hours": quiet}
    entry = audit.Entry(audit.SYSTEM_STREAM, actor, "set_notices", f"person {actor.name}", details=details)
    audit.append_to_system([entry])
