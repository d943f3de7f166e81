"""Says that something changed about what people are asked, as it changes: a stream of signals without content.

Whoever hears one asks for the page's part again, with the rights that are in force then.
"""

from __future__ import annotations

from uuid import UUID

from django.contrib.auth import HASH_SESSION_KEY
from django.contrib.auth.models import User
from django.contrib.sessions.models import Session
from django.core.handlers.asgi import ASGIRequest
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.utils import timezone
from django.views.decorators.http import require_safe

from checkpoint.errors import TooManyFollowers
from checkpoint.events import event_streams, following
from checkpoint.events.event_sources import Batch, Event, TeamsSource
from checkpoint.permissions import teams_visible_to
from checkpoint.states import StepStatus, WorkflowStatus

# What the engine does for every step, many times a second; a question, or its end, is another entry beside it.
_ROUTINE = frozenset(
    {"submit", "prepare", "start", "commit", "verify", "fail", "move", "wait", "take_over", "send_again", "end_lease"}
)
_ASKING = frozenset({StepStatus.UNCERTAIN, WorkflowStatus.NEEDS_REVIEW, WorkflowStatus.AWAITING_APPROVAL})
_NO_STREAM = 204  # the status that tells a browser not to come again; it polls


@require_safe
def changes(request: HttpRequest) -> HttpResponseBase:
    """A message for whatever concerns the person's queue; for as long as the person is signed in."""
    person = request.user
    assert isinstance(person, User)  # the middleware lets nobody in who has no account
    teams = set(teams_visible_to(person).values_list("pk", flat=True))
    if not isinstance(request, ASGIRequest) or request.method == "HEAD" or not teams:
        return HttpResponse(status=_NO_STREAM)
    session, proof = request.session.session_key or "", request.session.get(HASH_SESSION_KEY, "")
    try:
        follower = following.follow(
            TeamsSource(teams),
            after="",
            owner=("person", person.pk),
            admitted=lambda: _is_signed_in(person.pk, session, proof, teams),
        )
    except TooManyFollowers:
        return HttpResponse(status=_NO_STREAM)
    return event_streams.stream(follower, _signal)


def _is_signed_in(person_id: int, session: str, proof: str, teams: set[UUID]) -> bool:
    account = User.objects.filter(pk=person_id, is_active=True).first()
    if account is None or not Session.objects.filter(pk=session, expire_date__gt=timezone.now()).exists():
        return False
    return proof == account.get_session_auth_hash() and teams == set(
        teams_visible_to(account).values_list("pk", flat=True)
    )


def _signal(batch: Batch) -> str:
    if any(_concerns_people(event) for event in batch.events):
        return event_streams.message(place=batch.place, data="changed")
    return event_streams.still_alive(batch.place)


def _concerns_people(event: Event) -> bool:
    return event.verb not in _ROUTINE or not _ASKING.isdisjoint({event.before, event.after})
