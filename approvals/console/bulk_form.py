"""The form with which things in the queue are selected: what it offers, and what a person sent with it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import urlencode
from uuid import UUID, uuid4, uuid5

from django.http import QueryDict

from approvals.bulk.selection import Matching, Selection
from approvals.bulk.states import ANSWERS, BulkNoun
from approvals.inbox.narrowing import Narrowed
from approvals.inbox.question_list import requests_in
from approvals.inbox.review_queue import Shown, open_cases
from approvals.permissions import DECIDE_APPROVAL, DECIDE_CASE
from checkpoint.canonical import canonical
from checkpoint.errors import DecisionIncomplete
from checkpoint.permissions import Person
from checkpoint.states import Decision

_RIGHTS = {BulkNoun.CASE: DECIDE_CASE, BulkNoun.APPROVAL: DECIDE_APPROVAL}
_WORDS = {
    Decision.CONFIRM: "confirm: it happened",
    Decision.RETRY: "retry: it did not happen",
    Decision.ABANDON: "abandon: stop there",
    Decision.CONTINUE: "continue under what is in force",
    Decision.ACKNOWLEDGE: "acknowledge",
    Decision.APPROVE: "approve",
    Decision.REJECT: "reject",
}
# Of what narrows, in addresses and forms: there, kind and reason are those of the answer.
NAMES = {
    "team": "team",
    "kind": "workflow_kind",
    "tool": "tool",
    "reason": "question",
    "search": "search",
    "batch": "batch",
}
FIELDS = ("selection", "kind", "reason")


@dataclass(frozen=True)
class Typed:
    """What a person sent, kept when it is refused.

    Attributes:
        token: names the form as it was loaded; with the rest it names the job, so that a second press of the button
            finds the first one's job, and another selection does not.
        everything: all that the list shows, rather than what was ticked.
        field: the field that the refusal is about, if it is about one.
    """

    token: str
    kind: str
    reason: str
    everything: bool
    cases: tuple[str, ...]
    approvals: tuple[str, ...]
    shown: str
    narrowed: Narrowed
    refusal: str = ""
    field: str = ""

    @property
    def answer(self) -> Decision:
        """Raises DecisionIncomplete."""
        try:
            return Decision(self.kind)
        except ValueError:
            raise DecisionIncomplete("kind: choose an answer.") from None

    @property
    def selection(self) -> Selection:
        """Raises DecisionIncomplete."""
        try:
            if self.everything:
                return Selection(matching=Matching(self.narrowed, Shown(self.shown or Shown.WAITING)))
            return Selection(cases=tuple(map(UUID, self.cases)), approvals=tuple(map(UUID, self.approvals)))
        except ValueError:
            raise DecisionIncomplete("selection: it names something that does not exist.") from None

    @property
    def job_id(self) -> UUID | None:
        """The same for the same form with the same content; None without a token."""
        try:
            content = [self.kind, self.reason, self.everything, *self.cases, *self.approvals]
            return uuid5(UUID(self.token), canonical(content))
        except ValueError:
            return None

    def refused(self, refusal: str) -> Typed:
        """The same with the refusal, at its field where it names one."""
        field, _, sentence = refusal.partition(": ")
        if field not in FIELDS:
            return replace(self, refusal=refusal, field="")
        return replace(self, refusal=sentence, field=field)


def read(sent: QueryDict) -> Typed:
    """What was sent with the form."""
    return Typed(
        token=sent.get("token", ""),
        kind=sent.get("kind", ""),
        reason=sent.get("reason", ""),
        everything=sent.get("selected") == "everything",
        cases=tuple(sent.getlist("case")),
        approvals=tuple(sent.getlist("approval")),
        shown=sent.get("shown", ""),
        narrowed=narrowed(sent),
    )


def narrowed(sent: Mapping[str, Any]) -> Narrowed:
    """What the queue is narrowed to, from its address or from the form."""
    return Narrowed(**{member: sent.get(name, "").replace("\0", "").strip()[:100] for member, name in NAMES.items()})


def address(narrowed_to: Narrowed) -> str:
    """The query of an address that narrows the queue so."""
    found = {name: getattr(narrowed_to, member) for member, name in NAMES.items()}
    return urlencode({name: value for name, value in found.items() if value})


def offered(person: Person) -> dict[str, Any]:
    """What the form needs to be drawn; without answers where the person may give none."""
    return {
        "token": uuid4(),
        "answers": {
            noun: [(kind, _WORDS[kind]) for kind in kinds]
            for noun, kinds in ANSWERS.items()
            if person.has_perm(_RIGHTS[noun])
        },
    }


def bar(person: Person, shown: Shown, narrowed_to: Narrowed) -> dict[str, Any]:
    """The form above a list of the queue, with how many the list has on all of its pages."""
    form = offered(person)
    if shown is Shown.DONE:
        return form
    lists = {BulkNoun.CASE: open_cases, BulkNoun.APPROVAL: requests_in}
    counts = {noun: lists[noun](person, shown, narrowed_to).order_by().count() for noun in form["answers"]}
    return {**form, "counts": counts, "shown": shown, "narrowed": narrowed_to}
