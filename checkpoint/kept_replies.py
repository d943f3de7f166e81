"""Replies kept under an Idempotency-Key, so that a request sent twice is carried out once (S50).

The reply is written in the transaction of the change that it is about, so the two exist together or not at all. A
request that was cut down in between is carried out by its repetition, once the time for which it was held is over.
"""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from datetime import timedelta

from django.contrib.auth.models import User

from checkpoint import clock
from checkpoint.errors import KeyReused, RequestUnderWay
from checkpoint.models import KeptReply
from checkpoint.transactions import one_transaction, require_transaction

HELD_FOR = timedelta(seconds=60)  # longer than any request may take
KEPT_FOR = timedelta(days=7)
_COLLECTED_AT_ONCE = 1000


@dataclass(frozen=True)
class Reply:
    """What the caller gets, now and again.

    Attributes:
        location: address of what was made; empty where nothing was.
        body: JSON text.
    """

    status: int
    body: str
    location: str = ""


@dataclass(frozen=True)
class Held:
    """A request that nobody has answered: its holder carries it out, and then keeps the reply."""

    row_id: int
    holder: uuid.UUID

    def keep(self, reply: Reply) -> None:
        """Writes the reply in the present transaction.

        Raises:
            RequestUnderWay: it took longer than HELD_FOR, and a repetition carries it out; what is open is undone.
        """
        require_transaction()
        own = KeptReply.objects.filter(pk=self.row_id, holder=self.holder, status=None)
        if not own.update(status=reply.status, body=reply.body, location=reply.location):
            raise RequestUnderWay("A repetition of this request has taken it over; ask again under the same key.")


@one_transaction
def hold(*, account: User, key: str, fingerprint: str) -> Held | Reply:
    """Holds the key for a request, or returns the reply of the request that came before.

    Args:
        fingerprint: names method, address and body.

    Raises:
        KeyReused: another request came under the same key.
        RequestUnderWay: the first request under the key is still carried out.
    """
    now = clock.now()
    held = Held(0, uuid.uuid4())
    row, is_new = KeptReply.objects.get_or_create(
        account=account,
        key=key,
        defaults={"fingerprint": fingerprint, "holder": held.holder, "held_until": now + HELD_FOR, "created_at": now},
    )
    if is_new:
        return Held(row.pk, held.holder)
    row = KeptReply.objects.select_for_update().get(pk=row.pk)
    if row.fingerprint != fingerprint:
        raise KeyReused("This Idempotency-Key came before with another request. Use a new key for a new request.")
    if row.status is not None:
        return Reply(row.status, row.body, row.location)
    if row.held_until > now:
        raise RequestUnderWay(
            "The first request under this Idempotency-Key is not answered yet. Ask again in a moment."
        )
    row.holder, row.held_until = held.holder, now + HELD_FOR
    row.save(update_fields=["holder", "held_until"])
    return Held(row.pk, held.holder)


@one_transaction
def keep(held: Held, reply: Reply) -> None:
    """Writes the reply of a request that by itself can be repeated without harm. Raises as `Held.keep` does."""
    held.keep(reply)


@one_transaction
def let_go(held: Held) -> None:
    """Forgets a request that was refused and changed nothing, so that the key can be used again."""
    KeptReply.objects.filter(pk=held.row_id, holder=held.holder, status=None).delete()


@one_transaction
def collect() -> int:
    """Deletes replies older than KEPT_FOR, the oldest first; returns how many."""
    old = KeptReply.objects.filter(created_at__lt=clock.now() - KEPT_FOR).order_by("created_at")
    deleted, _ = KeptReply.objects.filter(pk__in=list(old.values_list("pk", flat=True)[:_COLLECTED_AT_ONCE])).delete()
    return deleted
