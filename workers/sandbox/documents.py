"""Documents with ETags: no keys, no references, but a change can be tied to the state that its author saw."""

from __future__ import annotations

import threading
from dataclasses import dataclass

from workers.sandbox.ledger import Body, Effect, Ledger
from workers.sandbox.providers import Answer, presented, problem

PATH = "/documents"

_KIND, _PREFIX = "document", "DOC"


@dataclass(frozen=True)
class Precondition:
    """The headers If-Match and If-None-Match of a request."""

    if_match: str | None
    if_none_match: str | None

    def holds(self, there: Effect | None) -> bool:
        """Against the document as it is (RFC 9110 section 13.1); the second is taken for "*" whatever it says."""
        if self.if_none_match is not None and there is not None:
            return False
        return self.if_match is None or (there is not None and self.if_match in ("*", etag(there)))


class Documents:
    """All documents; the ledger keeps every version."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._lock = threading.Lock()

    def put(self, name: str, wanted: Precondition, key: str | None, body: Body, **shown: float | None) -> Answer:
        """Changes the document if the precondition holds; both in one step."""
        with self._lock:
            there = self._newest(name)
            if not wanted.holds(there):
                return problem(412, f"the document {name} is not as you saw it")
            made = self._ledger.add(_PREFIX, _KIND, key=key, reference=name, body=body, **shown)
        return Answer(201 if there is None else 200, presented(made), {"ETag": etag(made)})

    def read(self, name: str) -> Answer:
        """The document as it is now."""
        there = self._newest(name)
        return Answer(200, presented(there), {"ETag": etag(there)}) if there else problem(404, f"no document {name}")

    def _newest(self, name: str) -> Effect | None:
        return next(reversed(self._ledger.listed(_KIND, "reference", name)), None)


def etag(document: Effect) -> str:
    """A strong ETag: no two versions have the same."""
    return f'"{document.number}"'
