"""Views of the review queue that a person keeps under a name. Each is an address; nobody else sees the name."""

from __future__ import annotations

from uuid import UUID

from django.contrib.auth.models import User

from approvals.models import SavedView
from checkpoint.canonical import string_problem
from checkpoint.errors import ActionIncomplete, TooMany
from checkpoint.transactions import one_transaction

LONGEST_NAME = 60  # characters
LONGEST_QUERY = 1_000  # characters
MOST_VIEWS = 20


@one_transaction
def keep(*, person: User, name: str, query: str) -> SavedView:
    """Keeps an address's query under a name; a name that the person has already means the new one from now on.

    Raises:
        ActionIncomplete: no name, one of over LONGEST_NAME characters, or a query of over LONGEST_QUERY.
        TooMany: the person has MOST_VIEWS.
    """
    name = name.strip()
    if not name or len(name) > LONGEST_NAME or string_problem(name):
        raise ActionIncomplete("name", f"give the view a name of at most {LONGEST_NAME} characters.")
    if len(query) > LONGEST_QUERY:
        raise ActionIncomplete("name", "what this view is narrowed to is too long to keep; use fewer words.")
    User.objects.select_for_update().get(pk=person.pk)
    others = SavedView.objects.filter(person=person).exclude(name=name)
    if others.count() >= MOST_VIEWS:
        raise TooMany(f"You have {MOST_VIEWS} views, and more cannot be kept. Remove one first.")
    kept, _ = SavedView.objects.update_or_create(person=person, name=name, defaults={"query": query})
    return kept


@one_transaction
def remove(*, person: User, view_id: UUID) -> None:
    """Forgets one of the person's own views; one that is gone already stays gone."""
    SavedView.objects.filter(person=person, pk=view_id).delete()
