"""When a person last proved who they are: by signing in, or by giving the password again. Kept in the session.

What counts is the database's time. Signing in, and a password given again, are in the system's audit stream, and so is
every wrong one.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

from django.contrib.auth import authenticate
from django.contrib.auth.models import User
from django.contrib.auth.signals import user_logged_in
from django.db import transaction
from django.http import HttpRequest

from checkpoint import audit, clock
from checkpoint.people import Actor

_KEY = "authenticated_at"


def connect() -> None:
    """Begins to remember sign-ins; called once, when Django has loaded the models."""
    user_logged_in.connect(_remember_sign_in)


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


def _remember_sign_in(sender: Any, request: HttpRequest | None, **kwargs: Any) -> None:
    if request is not None:
        request.session[_KEY] = clock.now().isoformat()
