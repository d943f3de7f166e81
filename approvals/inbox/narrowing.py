"""What lists of cases and of requests for approval are narrowed to; the same for a page and for a bulk job."""

from __future__ import annotations

import re
from dataclasses import dataclass
from uuid import UUID

from django.db.models import Q, TextField
from django.db.models.functions import Cast
from django.db.models.lookups import EndsWith

MOST_WORDS = 8
_BATCH = re.compile(r"([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}):([0-9]{1,9})", re.ASCII)
_ID_TAIL = re.compile(r"[0-9a-f-]{4,36}", re.IGNORECASE)


@dataclass(frozen=True)
class Narrowed:
    """Empty members narrow nothing.

    Attributes:
        team: a team's slug.
        kind: a workflow's kind.
        tool: a tool's name.
        reason: why a case was opened; no request for approval has one.
        search: words, of which each stands in the question, its step, its tool, the goal or the kind, or ends the id
            of the question or of its workflow.
        batch: a workflow's id, a colon and a position in its plan: the questions about the steps there.
    """

    team: str = ""
    kind: str = ""
    tool: str = ""
    reason: str = ""
    search: str = ""
    batch: str = ""

    @property
    def of_cases(self) -> Q:
        """As a condition on cases."""
        return self._common & self._found_in("sentence") & (Q(reason=self.reason) if self.reason else Q())

    @property
    def of_approvals(self) -> Q:
        """As a condition on requests for approval."""
        return self._common & self._found_in("closing") & (Q(pk=None) if self.reason else Q())

    @property
    def _common(self) -> Q:
        exact = {"workflow__team__slug": self.team, "workflow__kind": self.kind, "step__tool_version__name": self.tool}
        return Q(**{name: value for name, value in exact.items() if value}) & self._in_batch

    @property
    def _in_batch(self) -> Q:
        if not self.batch:
            return Q()
        named = _BATCH.fullmatch(self.batch)
        return Q(workflow=UUID(named[1]), step__position=int(named[2])) if named else Q(pk=None)

    def _found_in(self, text: str) -> Q:
        """Each of the words in one of the texts that stand in a row of the list."""
        found = Q()
        for word in self.search.split()[:MOST_WORDS]:
            found &= _is_said(word.strip("…"), (text, *_TEXTS))
        return found


_TEXTS = ("step__name", "step__tool_version__name", "workflow__goal", "workflow__kind")


def batch_of(workflow_id: UUID, position: int) -> str:
    """What `Narrowed.batch` calls a batch."""
    return f"{workflow_id}:{position}"


def _is_said(word: str, texts: tuple[str, ...]) -> Q:
    said = Q()
    for text in texts:
        said |= Q(**{f"{text}__icontains": word})
    if _ID_TAIL.fullmatch(word):
        for identifier in ("id", "workflow_id"):
            said |= Q(EndsWith(Cast(identifier, TextField()), word.lower()))
    return said
