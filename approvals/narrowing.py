"""What lists of cases and of requests for approval are narrowed to; the same for a page and for a bulk job."""

from __future__ import annotations

from dataclasses import dataclass

from django.db.models import Q


@dataclass(frozen=True)
class Narrowed:
    """Empty members narrow nothing.

    Attributes:
        team: a team's slug.
        kind: a workflow's kind.
        tool: a tool's name.
        reason: why a case was opened; no request for approval has one.
    """

    team: str = ""
    kind: str = ""
    tool: str = ""
    reason: str = ""

    @property
    def of_cases(self) -> Q:
        """As a condition on cases."""
        return self._common & (Q(reason=self.reason) if self.reason else Q())

    @property
    def of_approvals(self) -> Q:
        """As a condition on requests for approval."""
        return self._common & (Q(pk=None) if self.reason else Q())

    @property
    def _common(self) -> Q:
        exact = {"workflow__team__slug": self.team, "workflow__kind": self.kind, "step__tool_version__name": self.tool}
        return Q(**{name: value for name, value in exact.items() if value})
