"""A password given again, in the form of an answer: what the answer then says of its person's authentication."""

from __future__ import annotations

from django.http import HttpRequest

from approvals.step_up import Authentication
from checkpoint import clock
from checkpoint.errors import AuthenticateAgain, CheckpointError
from checkpoint.identity import authentications

CHANNEL = "console"
FIELD = "password"


def given(request: HttpRequest) -> Authentication:
    """When the person last authenticated: now, where the form holds their password.

    Raises:
        AuthenticateAgain: the form holds another password.
    """
    password = request.POST.get(FIELD, "")
    if password and not authentications.again(request, password, channel=CHANNEL):
        raise AuthenticateAgain("This is not your password. Enter it again.")
    return Authentication(authentications.last(request))


def is_recent(request: HttpRequest) -> bool:
    """Whether an answer needs no password now, whatever the policy says."""
    return Authentication(authentications.last(request)).is_recent(clock.now())


def about(refusal: CheckpointError) -> tuple[str, str] | None:
    """The field and the sentence of a refusal that a password would have avoided; None for any other."""
    return (FIELD, str(refusal)) if isinstance(refusal, AuthenticateAgain) else None
