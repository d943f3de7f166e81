"""The outside world of a simulation: providers that are slow, eventually consistent, refuse, or lie with 200.

It keeps what each contract promises, and nothing more: a request lands, if it does, before its call's deadline and
settle time are over, and by then a lookup shows it; a key is honoured for its lifetime, counted from the first send.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from random import Random

from checkpoint.contracts import Compensation, Contract, RecoveryClass, Reversibility
from checkpoint.outcomes import (
    Absent,
    Found,
    Inconclusive,
    NotVisible,
    Outcome,
    OutcomeUnknown,
    Pending,
    Receipt,
    Refused,
    Visible,
)

DEADLINE, SETTLE, KEY_LIFETIME = 10.0, 5.0, 60.0
LONGEST_INVISIBLE = 20.0


UNDO = "sim.undo"


def _contract(recovery: RecoveryClass, *, reads: bool = False, undone: bool = False, **more: object) -> Contract:
    if undone:
        more["compensation"] = Compensation(UNDO, {"n": {"$input": "/n"}})
    members = {"deadline": DEADLINE, "settle": SETTLE, "can_inspect": reads, "can_verify": reads, **more}
    return Contract(recovery=recovery, reversibility=Reversibility.COMPENSABLE, **members)  # type: ignore[arg-type] # a contract checks itself


CONTRACTS = {
    "sim.read": _contract(RecoveryClass.READ_ONLY),
    "sim.keyed": _contract(RecoveryClass.IDEMPOTENT, undone=True),
    "sim.remembered": _contract(RecoveryClass.IDEMPOTENT, concurrent_same_key_safe=True, key_lifetime=KEY_LIFETIME),
    "sim.looked_up": _contract(RecoveryClass.IDEMPOTENT, reads=True),
    "sim.queryable": _contract(RecoveryClass.QUERYABLE, reads=True, undone=True),
    "sim.opaque": _contract(RecoveryClass.OPAQUE, undone=True),
    "sim.opaque_read": _contract(RecoveryClass.OPAQUE, can_verify=True),
    "sim.limited": _contract(RecoveryClass.QUERYABLE, reads=True, in_flight=1),
    "sim.paced": _contract(RecoveryClass.IDEMPOTENT, starts_per_minute=20.0, burst=2),
    UNDO: _contract(RecoveryClass.QUERYABLE, reads=True),
}
UNDOING = frozenset(tool for tool, contract in CONTRACTS.items() if contract.compensation)


def seconds(amount: float) -> timedelta:
    """As a time span."""
    return timedelta(seconds=amount)


@dataclass
class Request:
    """One request on its way."""

    key: str
    contract: Contract
    sent_at: datetime
    lands_at: datetime
    known_by: datetime


@dataclass
class Effect:
    """One thing that happened; lookups and readings show it later."""

    landed_at: datetime
    listed_from: datetime
    visible_from: datetime


@dataclass
class Answer:
    """What the caller will hear, and when."""

    at: datetime
    outcome: Outcome


@dataclass
class Provider:
    """All providers of one simulation.

    Attributes:
        faulty: whether anything goes wrong from now on.
        receipts_for_nothing: keys for which it said yes and did nothing.
        unhelpful: how often it gave a lookup, and how often a reading, no answer, by key.
        permanently_refused: keys that it will never accept.
    """

    rng: Random
    faulty: bool = True
    effects: dict[str, list[Effect]] = field(default_factory=lambda: defaultdict(list))
    on_their_way: list[Request] = field(default_factory=list)
    first_sent: dict[str, datetime] = field(default_factory=dict)
    receipts_for_nothing: set[str] = field(default_factory=set)
    unhelpful: Counter[str] = field(default_factory=Counter)
    unread: Counter[str] = field(default_factory=Counter)
    permanently_refused: set[str] = field(default_factory=set)

    def send(self, key: str, contract: Contract, claimed_at: datetime, now: datetime) -> Answer:
        """A request goes out. What becomes of it is drawn now and happens later."""
        self.first_sent.setdefault(key, now)
        over_at = claimed_at + seconds(DEADLINE)
        fates = {self._does_it: 10, self._loses_the_answer: 3, self._lands_late: 3, self._never_comes: 2}
        fates |= {self._refuses: 2, self._lies: 1}
        fate = self.rng.choices(list(fates), list(fates.values()))[0] if self.faulty else self._does_it
        return fate(key, contract, now, over_at)

    def advance(self, now: datetime) -> None:
        """Whatever lands by now has landed, in order."""
        due = sorted((one for one in self.on_their_way if one.lands_at <= now), key=lambda one: one.lands_at)
        for request in due:
            self.on_their_way.remove(request)
            if not self._recognises(request):
                self.effects[request.key].append(self._effect(request))

    def look_up(self, key: str, now: datetime) -> Outcome:
        """What a lookup by key says."""
        if self.faulty and self.rng.random() < 0.15:
            self.unhelpful[key] += 1
            return Inconclusive("the lookup failed")
        if any(effect.listed_from <= now for effect in self.effects[key]):
            return Found(Receipt(operation_id=f"op-{key[:12]}"))
        if self._is_on_its_way(key) and self.rng.random() < 0.3:
            self.unhelpful[key] += 1
            return Pending()
        return Absent()

    def read(self, key: str, now: datetime) -> Outcome:
        """What a reading by another path shows."""
        fails = self.faulty and self.rng.random() < 0.15
        if not fails and any(effect.visible_from <= now for effect in self.effects[key]):
            return Visible()
        self.unread[key] += 1
        return NotVisible("it cannot be seen")

    def can_still_land(self, key: str) -> bool:
        """Whether a request with this key is on its way."""
        return self._is_on_its_way(key)

    def next_landing(self) -> datetime | None:
        """When the next request lands."""
        return min((request.lands_at for request in self.on_their_way), default=None)

    def _is_on_its_way(self, key: str) -> bool:
        return any(request.key == key for request in self.on_their_way)

    def _recognises(self, landing: Request) -> bool:
        """A provider that honours keys knows one from its first landing on, or from its arrival if it is careful."""
        contract, earlier = landing.contract, self.effects[landing.key]
        if contract.recovery is RecoveryClass.READ_ONLY:
            return True
        if contract.recovery is not RecoveryClass.IDEMPOTENT or not earlier:
            return False
        lifetime = contract.key_lifetime
        if lifetime is not None and landing.lands_at >= self.first_sent[landing.key] + seconds(lifetime):
            return False
        return contract.concurrent_same_key_safe or any(effect.landed_at <= landing.sent_at for effect in earlier)

    def _effect(self, request: Request) -> Effect:
        listed = request.lands_at + (request.known_by - request.lands_at) * self._share()
        return Effect(request.lands_at, listed, request.lands_at + seconds(LONGEST_INVISIBLE) * self._share())

    def _share(self) -> float:
        """Mostly at once, sometimes as late as it may be."""
        return self.rng.choice([0.0, 0.0, self.rng.random()]) if self.faulty else 0.0

    def _go(self, key: str, contract: Contract, now: datetime, lands_at: datetime, over_at: datetime) -> None:
        self.on_their_way.append(Request(key, contract, now, lands_at, over_at + seconds(SETTLE) * 0.999))

    def _within(self, start: datetime, end: datetime) -> datetime:
        return start + max(end - start, timedelta()) * (self.rng.random() * 0.999)

    def _does_it(self, key: str, contract: Contract, now: datetime, over_at: datetime) -> Answer:
        lands_at = min(self._within(now, over_at), now + seconds(self.rng.random() * 2))
        self._go(key, contract, now, lands_at, over_at)
        return Answer(lands_at + seconds(self.rng.random() / 10), Receipt(operation_id=f"op-{key[:12]}"))

    def _loses_the_answer(self, key: str, contract: Contract, now: datetime, over_at: datetime) -> Answer:
        lands_at = self._within(now, over_at)
        self._go(key, contract, now, lands_at, over_at)
        return Answer(max(over_at, now), OutcomeUnknown("the deadline passed"))

    def _lands_late(self, key: str, contract: Contract, now: datetime, over_at: datetime) -> Answer:
        """The local timeout fires while the request is still on its way (S09)."""
        self._go(key, contract, now, self._within(now, over_at + seconds(SETTLE)), over_at)
        return Answer(now + seconds(self.rng.random()), OutcomeUnknown("the connection was reset"))

    def _never_comes(self, key: str, contract: Contract, now: datetime, over_at: datetime) -> Answer:
        return Answer(self._within(now, over_at), OutcomeUnknown("the connection was lost"))

    def _refuses(self, key: str, contract: Contract, now: datetime, over_at: datetime) -> Answer:
        permanent = self.rng.random() < 0.2
        if permanent:
            self.permanently_refused.add(key)
        retry_after = self.rng.choice([None, None, 3.0])
        return Answer(
            now + seconds(self.rng.random()), Refused("no", "refused", retry_after=retry_after, permanent=permanent)
        )

    def _lies(self, key: str, contract: Contract, now: datetime, over_at: datetime) -> Answer:
        """200, and nothing happens."""
        self.receipts_for_nothing.add(key)
        return Answer(now + seconds(self.rng.random()), Receipt(operation_id=f"op-{key[:12]}"))
