"""Limits in flight: who may start now, and who waits for a place. Part of the claim, in its transaction.

A tool's limit holds over all workers: its row is locked, and the steps that are started are counted under the lock. So
a place is free again the moment that a step is no longer started, and a crash leaves nothing to clean up. A workflow
that gets no place says so (`held_by`) and gets a time at which it looks again by itself; long before that, the turn
that records a call of this tool passes the place on (`journal.take_turn`). What has no limit costs one look at the
policy in memory.
"""

from __future__ import annotations

import uuid
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from checkpoint import limit_rows, pinned, step_rulings
from checkpoint.errors import RecordDamaged
from checkpoint.limit_rows import LimitRow
from checkpoint.rulings import Limits
from checkpoint.states import StepStatus
from checkpoint.step_rows import StepRow
from checkpoint.transitions import Changes

# The line of those that wait: how soon its first looks again, how far apart the others are, how late the last looks.
LOOK_AGAIN = timedelta(seconds=2)
APART = timedelta(milliseconds=20)
AT_MOST = timedelta(seconds=60)

NO_LIMITS = Limits()


@dataclass
class Limiter:
    """The places of one turn.

    Attributes:
        full: tool versions of steps that got no place in this turn; there is no use in looking at more of them.
    """

    changes: Changes
    full: set[uuid.UUID] = field(default_factory=set)
    _limits: dict[uuid.UUID, Limits] = field(default_factory=dict)
    _rows: dict[str, LimitRow] = field(default_factory=dict)
    _in_flight: dict[str, int] = field(default_factory=dict)
    _in_workflow: dict[uuid.UUID, int] = field(default_factory=dict)
    _held: dict[uuid.UUID, str | None] = field(default_factory=dict)

    def consider(self, rows: list[StepRow], policy_version_id: uuid.UUID) -> None:
        """Locks and counts what limits these steps, which are about to start, under the policy in force.

        Waits for other turns only while it holds no limit yet.
        """
        limits = {row.id: self._read(row, policy_version_id) for row in rows}
        limited = [row for row in rows if limits[row.id] != NO_LIMITS]
        if not limited:
            return
        self._limits |= limits
        self.changes.write_steps()  # what this turn has ended is not in flight any more
        tools = {_tool(row) for row in limited if limits[row.id].in_flight is not None} - self._rows.keys()
        if tools:
            locked = limit_rows.lock(tools, wait=not self._rows)
            self._rows |= locked
            self._in_flight |= limit_rows.in_flight(locked)
        workflows = {row.workflow_id for row in limited} - self._in_workflow.keys()
        self._in_workflow |= dict.fromkeys(workflows, 0) | limit_rows.in_flight_of_workflows(workflows)

    def _read(self, row: StepRow, policy_version_id: uuid.UUID) -> Limits:
        if not pinned.has_limits(policy_version_id):
            return NO_LIMITS
        try:
            return step_rulings.ruling(policy_version_id, self.changes.workflows[row.workflow_id], row).limits
        except RecordDamaged:
            return NO_LIMITS  # whoever asks whether it may start comes upon the same damage, and says so

    def is_limited(self, row: StepRow) -> bool:
        """Whether another step may wait for the place that this one takes."""
        return self._limits.get(row.id, NO_LIMITS).in_flight is not None

    def take_place(self, row: StepRow) -> bool:
        """Takes a place for a step that starts if it gets one. If not, its workflow waits for one.

        A step that is started already has its place: it is sent again.
        """
        limits = self._limits.get(row.id, NO_LIMITS)
        if limits == NO_LIMITS or row.status is StepStatus.STARTED:
            return True
        tool = _tool(row)
        if limits.in_flight is not None and not self._has_room(tool, limits.in_flight):
            return self._hold(row, tool)
        of_workflow = self._in_workflow[row.workflow_id]
        if limits.in_flight_per_workflow is not None and of_workflow >= limits.in_flight_per_workflow:
            return self._hold(row, None)
        self._in_flight[tool] = self._in_flight.get(tool, 0) + 1
        self._in_workflow[row.workflow_id] = of_workflow + 1
        return True

    def _has_room(self, tool: str, most: int) -> bool:
        return tool in self._rows and self._in_flight.get(tool, 0) < most

    def _hold(self, row: StepRow, tool: str | None) -> bool:
        self.full.add(row.tool_version_id)
        self._held.setdefault(row.workflow_id, tool)
        return False

    def close(self, *, all_seen: bool) -> None:
        """Says of every workflow for what it waits, and when it looks again.

        Args:
            all_seen: whether no step is ready that this turn did not look at; otherwise others look at once.
        """
        for workflow_id, row in self.changes.workflows.items():
            row.held_by = self._held.get(workflow_id)
            if all_seen and workflow_id in self._held:
                self.changes.hold(workflow_id, until=self._next_place(row.held_by))
        if changed := [row for row in self._rows.values() if row.place_at is not None]:
            limit_rows.write(changed)

    def _next_place(self, tool: str | None) -> datetime:
        soonest, latest = self.changes.now + LOOK_AGAIN, self.changes.now + AT_MOST
        line = self._rows.get(tool) if tool else None
        if line is None:
            return soonest
        line.place_at = min(max(soonest, line.place_at + APART) if line.place_at else soonest, latest)
        return line.place_at


def _tool(row: StepRow) -> str:
    return pinned.tool_version(row.tool_version_id).name
