"""The providers' own behaviour: what each does with a request when nothing goes wrong."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import Lock
from typing import Any

from workers.sandbox.ledger import Body, Effect, Ledger, Remembered, digest

REPLAY_HEADER = "Idempotent-Replayed"


@dataclass(frozen=True)
class Provider:
    """One kind of effect, and what its provider can be relied on for.

    Attributes:
        lookup: the query parameter by which effects can be found, and the field it is compared with; "" for none.
        readable: whether one effect can be read by its number.
    """

    path: str
    kind: str
    prefix: str
    honours_key: bool = False
    lookup: str = ""
    readable: bool = False


PROVIDERS = (
    Provider("/billing/invoices", "invoice", "INV", honours_key=True, lookup="key", readable=True),
    Provider("/tickets", "ticket", "TKT", lookup="reference", readable=True),
    Provider("/charges", "charge", "CHG"),
    Provider("/refunds", "refund", "RFD"),
)
MAIL = Provider("/mail", "mail", "MAIL", lookup="key")  # what came by SMTP; it can only be read here
SITE = Provider("/site", "page", "PAGE", lookup="key")


@dataclass(frozen=True)
class Answer:
    """An HTTP answer in JSON."""

    status: int
    body: Any
    headers: dict[str, str] = field(default_factory=dict)


class KeysInProgress:
    """Keys whose first request is still being worked on; a second one meanwhile gets 409."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._keys: set[tuple[str, str]] = set()

    @contextmanager
    def holding(self, kind: str, key: str | None) -> Iterator[bool]:
        """Yields False, and holds nothing, if another request has this key."""
        entry = (kind, key or "")
        with self._lock:
            free = not key or entry not in self._keys
            if free:
                self._keys.add(entry)
        try:
            yield free
        finally:
            if free:
                with self._lock:
                    self._keys.discard(entry)

    def __contains__(self, entry: tuple[str, str]) -> bool:
        return entry in self._keys


def problem(status: int, detail: str, **headers: str) -> Answer:
    """An error in the shape of RFC 9457."""
    return Answer(status, {"status": status, "detail": detail}, headers)


def create(ledger: Ledger, provider: Provider, key: str | None, body: Body, **shown: float | None) -> Answer:
    """Does the work of a POST, or repeats the answer that its key stands for."""
    known = ledger.remembered(provider.kind, key) if provider.honours_key and key else None
    if known:
        return _replay(ledger, provider, known, body)
    reference = body.get("reference")
    effect = ledger.add(provider.prefix, provider.kind, key=key, reference=reference, body=body, **shown)
    return Answer(201, presented(effect))


def put_page(ledger: Ledger, name: str, key: str | None, body: Body, **shown: float | None) -> Answer:
    """Puts a page on the site; the last one of a name is the one that is read."""
    effect = ledger.add(SITE.prefix, SITE.kind, key=key, reference=name, body=body, **shown)
    return Answer(200, presented(effect))


def read_page(ledger: Ledger, name: str) -> Answer:
    """The page of that name as it is now."""
    versions = ledger.listed(SITE.kind, "reference", name)
    return Answer(200, presented(versions[-1])) if versions else problem(404, f"no page is named {name}")


def read(ledger: Ledger, provider: Provider, number: str) -> Answer:
    """One effect by its number."""
    effect = ledger.visible(provider.kind, number)
    return Answer(200, presented(effect)) if effect else problem(404, f"there is no {provider.kind} {number}")


def look_up(ledger: Ledger, provider: Provider, value: str, in_progress: KeysInProgress) -> Answer:
    """Every effect with that key or reference."""
    effects = ledger.listed(provider.kind, provider.lookup, value)
    found = {
        f"{provider.kind}s": [presented(effect) for effect in effects],
        "count": len(effects),
        "in_progress": (provider.kind, value) in in_progress,
    }
    return Answer(200, found)


def presented(effect: Effect) -> dict[str, Any]:
    """An effect as its provider shows it."""
    created = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(effect.at))
    return {**effect.body, "number": effect.number, "created_at": created, "status": "done", "key": effect.key}


def _replay(ledger: Ledger, provider: Provider, known: Remembered, body: Body) -> Answer:
    if known.digest != digest(body):
        return problem(422, "this Idempotency-Key was used with another body")
    if known.number is None:
        return problem(known.status, "internal error", **{REPLAY_HEADER: "true"})
    # The original answer, also while a fault hides the effect from reads.
    return Answer(known.status, presented(ledger.effect(provider.kind, known.number)), {REPLAY_HEADER: "true"})
