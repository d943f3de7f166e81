"""An administrator sets up where teams are told: one transaction each, audited. The address is never written down."""

from __future__ import annotations

import re
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from urllib.parse import urlsplit

from django.conf import settings
from django.contrib.auth.models import User
from django.db.models import QuerySet

from approvals.models import NoticeChannel
from approvals.notifying.notice_rules import ChannelFormat, NoticeKind
from approvals.permissions import ADMINISTER_NOTICES
from checkpoint import audit
from checkpoint.canonical import string_problem
from checkpoint.errors import Fault, Forbidden, NotFound, SubmissionInvalid
from checkpoint.models import Team
from checkpoint.people import Actor
from checkpoint.permissions import Person, require, teams_visible_to
from checkpoint.trail import denials
from checkpoint.transactions import one_transaction

LONGEST_NAME = 80
LONGEST_URL = 2000
_SECRET_NAME = re.compile(r"[A-Z][A-Z0-9_]{0,59}")


@dataclass(frozen=True)
class NewChannel:
    """A channel as an administrator describes it.

    Attributes:
        team: the team's slug; empty for all teams.
        secret_name: for Standard Webhooks, the NAME in CHECKPOINT_SECRET_<NAME>; never the secret itself.
    """

    name: str
    team: str
    format: str
    url: str
    secret_name: str
    kinds: list[str]


def channels(person: Person) -> QuerySet[NoticeChannel]:
    """Every channel, by name. Raises Forbidden unless the person looks after notices."""
    require(person, ADMINISTER_NOTICES, action="see where teams are told")
    return NoticeChannel.objects.select_related("team")


def host_of(channel: NoticeChannel) -> str:
    """What may be shown of a channel's address: the rest of it can be a secret."""
    return urlsplit(channel.url).netloc


def add(described: NewChannel, *, person: User, channel: str) -> NoticeChannel:
    """Adds a channel that is switched on.

    Raises:
        Forbidden: the person does not look after notices.
        SubmissionInvalid: all that is wrong with the description; nothing was stored.
    """
    return _as_administrator(person, channel, lambda actor: _add(described, person, actor))


def switch(channel_id: uuid.UUID, *, enabled: bool, person: User, channel: str) -> NoticeChannel:
    """Switches a channel on or off; what waits for a channel that is off is skipped.

    Raises:
        Forbidden: the person does not look after notices.
        NotFound: no such channel.
    """
    return _as_administrator(person, channel, lambda actor: _switch(channel_id, enabled, actor))


def _as_administrator(person: User, channel: str, verb: Callable[[Actor], NoticeChannel]) -> NoticeChannel:
    actor = Actor(person.get_username(), channel)
    try:
        require(User.objects.get(pk=person.pk), ADMINISTER_NOTICES, action="set up where teams are told")
    except Forbidden as refusal:
        denials.record(actor=actor, verb="set_notices", subject="notice channels", reason=str(refusal))
        raise
    return verb(actor)


@one_transaction
def _add(described: NewChannel, person: User, actor: Actor) -> NoticeChannel:
    if faults := list(_faults(described, person)):
        raise SubmissionInvalid(faults)
    made = NoticeChannel.objects.create(
        name=described.name,
        team=Team.objects.get(slug=described.team) if described.team else None,
        format=described.format,
        url=described.url,
        secret_name=described.secret_name,
        kinds=described.kinds,
    )
    _audit(made, "add", actor)
    return made


@one_transaction
def _switch(channel_id: uuid.UUID, enabled: bool, actor: Actor) -> NoticeChannel:
    found = NoticeChannel.objects.select_for_update(of=("self",)).filter(pk=channel_id).first()
    if found is None:
        raise NotFound(f"There is no channel {channel_id}.")
    found.enabled = enabled
    found.save(update_fields=["enabled"])
    _audit(found, "enable" if enabled else "disable", actor)
    return found


def _faults(described: NewChannel, person: User) -> Iterator[Fault]:
    for field, text in (("name", described.name), ("team", described.team)):
        if problem := string_problem(text):
            yield Fault(f"/{field}", problem)
            return
    if not 0 < len(described.name) <= LONGEST_NAME:
        yield Fault("/name", f"must have 1 to {LONGEST_NAME} characters")
    elif NoticeChannel.objects.filter(name=described.name).exists():
        yield Fault("/name", "another channel has this name already")
    if described.team and not teams_visible_to(person).filter(slug=described.team).exists():
        yield Fault("/team", "there is no such team that you may see")
    if not described.kinds or not set(described.kinds) <= set(NoticeKind):
        yield Fault("/kinds", f"must be at least one of {', '.join(NoticeKind)}")
    yield from _faults_of_format(described)


def _faults_of_format(described: NewChannel) -> Iterator[Fault]:
    if described.format not in set(ChannelFormat):
        yield Fault("/format", f"must be one of {', '.join(ChannelFormat)}")
    if described.format == ChannelFormat.STANDARD and not _SECRET_NAME.fullmatch(described.secret_name):
        yield Fault("/secret_name", "names a secret, in capitals: TEAM_HOOK for CHECKPOINT_SECRET_TEAM_HOOK")
    if described.format == ChannelFormat.SLACK and described.secret_name:
        yield Fault("/secret_name", "must be empty: the address of such a webhook is its secret")
    if problem := _problem_of(described.url):
        yield Fault("/url", problem)


def _problem_of(url: str) -> str:
    """Whether the host leads to a private network is checked at each delivery, when its name is resolved."""
    try:
        parts = urlsplit(url)
        host = parts.hostname
    except ValueError:
        return "is no web address"
    if len(url) > LONGEST_URL or not host or not url.isascii() or not url.isprintable() or " " in url:
        return f"is no web address of at most {LONGEST_URL} plain characters"
    if parts.username is not None or parts.password is not None:
        return "must not hold a user name or password"
    if parts.scheme == "http" and parts.netloc in settings.CHECKPOINT_PRIVATE_WEBHOOK_HOSTS:
        return ""
    return "" if parts.scheme == "https" else "must begin with https://"


def _audit(stored: NoticeChannel, verb: str, actor: Actor) -> None:
    team = stored.team.slug if stored.team else ""
    details = {"team": team, "format": stored.format, "host": host_of(stored), "kinds": stored.kinds}
    entry = audit.Entry(audit.SYSTEM_STREAM, actor, verb, f"notice channel {stored.name}", details=details)
    audit.append_to_system([entry])
