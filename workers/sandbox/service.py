"""From a request to an answer: routing, and the faults around the work."""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

from workers.sandbox import documents, providers
from workers.sandbox.documents import Documents, Precondition
from workers.sandbox.ledger import Body, Ledger
from workers.sandbox.providers import Answer, KeysInProgress, Provider, problem
from workers.sandbox.switch import Fault, FaultName, Switch, read_fault, read_magic


@dataclass(frozen=True)
class Request:
    """One HTTP request. `gone()` says whether the caller has closed the connection."""

    method: str
    path: str
    query: dict[str, str]
    key: str | None
    body: Any
    gone: Callable[[], bool]
    if_match: str | None = None
    if_none_match: str | None = None


class Service:
    """All providers, their ledger and the switch."""

    def __init__(self, ledger: Ledger) -> None:
        self.ledger = ledger
        self.switch = Switch()
        self._in_progress = KeysInProgress()
        self._documents = Documents(ledger)

    def answer(self, request: Request) -> Answer | None:
        """The answer, or None for a connection that is closed without one."""
        match request.method, request.path:
            case "GET", "/ledger":
                return Answer(200, self._ledger_as_json())
            case "GET", "/switch":
                return Answer(200, self.switch.to_json())
            case "POST", "/switch":
                return self._turn_switch(request.body)
        if not isinstance(request.body, dict):
            return problem(400, "the body must be a JSON object")
        try:
            faults = self._faults(request)
        except (TypeError, ValueError) as error:
            return problem(400, f"metadata.sandbox: {error}")
        return self._act(request, {fault.fault: fault for fault in faults})

    def _act(self, request: Request, faults: dict[FaultName, Fault]) -> Answer | None:
        """The order of these lines is the meaning of the faults."""
        if fault := faults.get(FaultName.REFUSE):
            return problem(fault.status, "refused")
        if FaultName.DROP_BEFORE_WORK in faults:
            return None
        provider = next(
            (p for p in (*providers.PROVIDERS, providers.SITE, providers.MAIL) if p.path == request.path), None
        )
        honoured = request.key if provider and provider.honours_key and request.method == "POST" else None
        with self._in_progress.holding(provider.kind if provider else "", honoured) as free:
            if not free:
                return problem(409, "a request with this Idempotency-Key is still in progress")
            self._wait(request, faults.get(FaultName.WORK_LATE))
            answer = self._work(request, provider, faults)
            self._wait(request, faults.get(FaultName.HOLD))
            self._wait(request, faults.get(FaultName.ANSWER_LATE))
        return None if FaultName.DROP_AFTER_WORK in faults else answer

    def _work(self, request: Request, provider: Provider | None, faults: dict[FaultName, Fault]) -> Answer:
        if fault := faults.get(FaultName.CACHED_FAILURE):
            return self._fail_for_ever(request, provider, fault)
        if request.method == "GET":
            return self._read(request, provider)
        shown = _shown(faults)
        if request.method == "POST" and provider in providers.PROVIDERS:
            return providers.create(self.ledger, provider, request.key, request.body, **shown)
        parent, _, name = request.path.rpartition("/")
        if request.method == "PUT" and parent == documents.PATH and name:
            wanted = Precondition(request.if_match, request.if_none_match)
            return self._documents.put(name, wanted, request.key, request.body, **shown)
        if request.method == "PUT" and parent == providers.SITE.path and name:
            return providers.put_page(self.ledger, name, request.key, request.body, **shown)
        return problem(405, f"{request.method} {request.path} is not offered")

    def _fail_for_ever(self, request: Request, provider: Provider | None, fault: Fault) -> Answer:
        if provider and request.key and not self.ledger.remembered(provider.kind, request.key):
            self.ledger.cache_failure(provider.kind, request.key, request.body, fault.status)
        return problem(fault.status, "internal error")

    def _read(self, request: Request, provider: Provider | None) -> Answer:
        if provider and provider.lookup and (value := request.query.get(provider.lookup)):
            return providers.look_up(self.ledger, provider, value, self._in_progress)
        parent, _, last = request.path.rpartition("/")
        if parent == providers.SITE.path:
            return providers.read_page(self.ledger, last)
        if parent == documents.PATH:
            return self._documents.read(last)
        readable = next((p for p in providers.PROVIDERS if p.path == parent and p.readable), None)
        return (
            providers.read(self.ledger, readable, last) if readable else problem(404, "there is nothing to read here")
        )

    def _faults(self, request: Request) -> list[Fault]:
        magic = read_magic(request.body)
        faults = self.switch.take(request.method, request.path)
        # Without a key or reference one send cannot be told from the next, so magic strikes every time.
        name = request.key or request.body.get("reference")
        if magic and (name is None or self.ledger.first_magic(str(name), magic.fault)):
            faults.append(magic)
        return faults

    def _wait(self, request: Request, fault: Fault | None) -> None:
        if fault:
            # A provider goes on working when its caller is gone; only a request that is held for a test is given up.
            gone = request.gone if fault.fault is FaultName.HOLD else lambda: False
            self.switch.hold(
                method=request.method, path=request.path, key=request.key, seconds=fault.seconds, gone=gone
            )

    def _turn_switch(self, wanted: Body) -> Answer:
        try:
            self._turn(wanted)
        except (TypeError, ValueError) as error:
            return problem(400, str(error))
        return Answer(200, self.switch.to_json())

    def _turn(self, wanted: Body) -> None:
        match wanted:
            case {"clear": True}:
                self.switch.clear()
                self.ledger.reveal()
            case {"release": "all"}:
                self.switch.release(None)
            case {"release": int(held_id)}:
                self.switch.release(held_id)
            case {"forget_keys": True}:
                self.ledger.forget_keys()
            case _:
                self.switch.set(read_fault(wanted))

    def _ledger_as_json(self) -> dict[str, Any]:
        effects = self.ledger.effects()
        by: dict[str, defaultdict[str, Counter[str]]] = {"key": defaultdict(Counter), "reference": defaultdict(Counter)}
        for effect in effects:
            for field, counters in by.items():
                if (value := getattr(effect, field)) is not None:
                    counters[effect.kind][value] += 1
        return {
            "effects": [asdict(effect) for effect in effects],
            "counts": dict(Counter(effect.kind for effect in effects)),
            "by_key": by["key"],
            "by_reference": by["reference"],
        }


def _shown(faults: dict[FaultName, Fault]) -> dict[str, float | None]:
    """From when reads and lookups show an effect that is made now; a lookup never shows what a read does not."""
    visible = _shown_from(faults.get(FaultName.HIDE_EFFECT))
    listed = _shown_from(faults.get(FaultName.LOOKUP_LAG))
    return {
        "visible_from": visible,
        "listed_from": None if visible is None or listed is None else max(visible, listed),
    }


def _shown_from(fault: Fault | None) -> float | None:
    """At once without a fault; never (None) for a fault without an end."""
    if fault is None:
        return 0.0
    return None if fault.seconds is None else time.time() + fault.seconds
