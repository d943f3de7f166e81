"""When a person last proved who they are: by signing in, or by giving the password again. Kept in the session.

What counts is the database's time. Signing in, and a password given again, are in the system's audit stream, and so is
every wrong one.
"""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime
from typing import Any

from django.contrib.auth import SESSION_KEY, authenticate
from django.contrib.auth.models import User
from django.contrib.auth.signals import user_logged_in
from django.contrib.sessions.models import Session
from django.db import transaction
from django.db.models.signals import post_save
from django.http import HttpRequest

from checkpoint import audit, clock
from checkpoint.people import Actor

_KEY = "authenticated_at"


def connect() -> None:
    """Begins to listen for sign-ins and for accounts that are disabled; called once, with the models loaded."""
    user_logged_in.connect(_remember_sign_in)
    post_save.connect(_end_sessions, sender=User)


def last(request: HttpRequest) -> datetime | None:
    """When whoever is signed in last authenticated in this session; None where the session is older than this."""
    text = request.session.get(_KEY)
    return datetime.fromisoformat(text) if text else None


def again(request: HttpRequest, password: str, *, channel: str) -> bool:
    """Whether the password is that of whoever is signed in; then the session remembers that it was given now."""
    at = check(request.user, password, channel=channel, request=request)  # type: ignore[arg-type]  # signed in
    if at is not None:
        request.session[_KEY] = at.isoformat()
    return at is not None


def check(person: User, password: str, *, channel: str, request: HttpRequest | None = None) -> datetime | None:
    """The time now if the password is the person's and the account is active, else None. Both are in the audit."""
    found = authenticate(request, username=person.get_username(), password=password)
    if found is None or found.pk != person.pk:
        return None
    name = person.get_username()
    at = clock.now()
    with transaction.atomic():
        audit.append_to_system(
            [audit.Entry(audit.SYSTEM_STREAM, Actor(name, channel), "authenticate_again", f"person {name}")]
        )
    return at


def _end_sessions(instance: User, created: bool, update_fields: Collection[str] | None, **kwargs: Any) -> None:
    """A disabled account's sessions end for good, so that none lives again when the account is enabled (S25)."""
    if created or instance.is_active or (update_fields is not None and "is_active" not in update_fields):
        return
    own = str(instance.pk)
    ended = [row.pk for row in Session.objects.iterator() if row.get_decoded().get(SESSION_KEY) == own]
    Session.objects.filter(pk__in=ended).delete()


def _remember_sign_in(sender: Any, request: HttpRequest | None, **kwargs: Any) -> None:
    if request is not None:
        request.session[_KEY] = clock.now().isoformat()
