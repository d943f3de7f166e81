"""Limits: who may start now, and who waits for a place or for its time. Part of the claim, in its transaction.

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

from checkpoint.errors import RecordDamaged
from checkpoint.gates import step_rulings
from checkpoint.gates.rulings import Limits
from checkpoint.rows import limit_rows
from checkpoint.rows.limit_rows import LimitRow
from checkpoint.rows.step_rows import StepRow
from checkpoint.rows.workflow_rows import WorkflowRow
from checkpoint.states import StepStatus
from checkpoint.transitions import Changes
from checkpoint.turns import pinned

# The line of those that wait: how soon its first looks again, how far apart the others are, how late the last looks.
LOOK_AGAIN = timedelta(seconds=2)
APART = timedelta(milliseconds=20)
AT_MOST = timedelta(seconds=60)

NO_LIMITS = Limits()


@dataclass(frozen=True)
class _Hold:
    """For which tool's limit a workflow waits (None: for its own), and its place in the line."""

    tool: str | None
    soonest: datetime
    apart: timedelta = APART


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
    _held: dict[uuid.UUID, _Hold] = field(default_factory=dict)

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
        tools = {_tool(row) for row in limited if _over_all_workers(limits[row.id])} - self._rows.keys()
        if tools:
            locked = limit_rows.lock(tools, wait=not self._rows)
            self._rows |= locked
            self._in_flight |= limit_rows.in_flight(locked)
        workflows = {row.workflow_id for row in limited} - self._in_workflow.keys()
        self._in_workflow |= dict.fromkeys(workflows, 0) | limit_rows.in_flight_of_workflows(workflows)

    def _read(self, row: StepRow, policy_version_id: uuid.UUID) -> Limits:
        own = pinned.limits(row)
        if not pinned.has_limits(policy_version_id):
            return own
        try:
            ruling = step_rulings.ruling(policy_version_id, self.changes.workflows[row.workflow_id], row)
            return ruling.limits.over(pinned.contract(row))
        except RecordDamaged:
            return own  # whoever asks whether it may start comes upon the same damage, and says so

    def is_limited(self, row: StepRow) -> bool:
        """Whether another step may wait for the place that this one takes."""
        return self._limits.get(row.id, NO_LIMITS).in_flight is not None

    def take_place(self, row: StepRow) -> bool:
        """Takes a place for a step that starts if it gets one. If not, its workflow waits for one."""
        limits = self._limits.get(row.id, NO_LIMITS)
        if limits == NO_LIMITS:
            return True
        if hold := self._reason_to_hold(row, _tool(row), limits):
            self.full.add(row.tool_version_id)
            self._held.setdefault(row.workflow_id, hold)
            return False
        self._count(row, _tool(row), limits)
        return True

    def _reason_to_hold(self, row: StepRow, tool: str, limits: Limits) -> _Hold | None:
        """A step that is started already has its place: it is sent again, and only the rate counts it once more."""
        now, line, anew = self.changes.now, self._rows.get(tool), row.status is not StepStatus.STARTED
        if line is None and _over_all_workers(limits):
            return _Hold(tool, now + LOOK_AGAIN)
        if anew and _reached(limits.in_flight, self._in_flight.get(tool, 0)):
            return _Hold(tool, now + LOOK_AGAIN)
        if anew and _reached(limits.in_flight_per_workflow, self._in_workflow[row.workflow_id]):
            return _Hold(None, now + LOOK_AGAIN)
        if line and (rate := limits.rate) and (free_at := rate.free_at(line.paced_to, now)) > now:
            return _Hold(tool, free_at, rate.interval)
        return None

    def _count(self, row: StepRow, tool: str, limits: Limits) -> None:
        if row.status is not StepStatus.STARTED:
            self._in_flight[tool] = self._in_flight.get(tool, 0) + 1
            self._in_workflow[row.workflow_id] += 1
        if rate := limits.rate:
            self._rows[tool].paced_to = rate.after_one(self._rows[tool].paced_to, self.changes.now)

    def close(self, *, all_seen: bool) -> None:
        """Says of every workflow for what it waits, and when it looks again.

        Args:
            all_seen: whether no step is ready that this turn did not look at; otherwise others look at once.
        """
        for workflow_id, row in self.changes.workflows.items():
            hold = self._held.get(workflow_id)
            if hold and all_seen:
                self.changes.hold(workflow_id, until=_kept_place(row, hold, self.changes.now) or self._next_place(hold))
            row.held_by = hold.tool if hold else None
        if self._rows:
            limit_rows.write(list(self._rows.values()))

    def _next_place(self, hold: _Hold) -> datetime:
        line = self._rows.get(hold.tool) if hold.tool else None
        if line is None:
            return hold.soonest
        behind = line.place_at + hold.apart if line.place_at else hold.soonest
        line.place_at = max(hold.soonest, min(behind, self.changes.now + AT_MOST))
        return line.place_at


def _kept_place(row: WorkflowRow, hold: _Hold, now: datetime) -> datetime | None:
    """Whoever is in the line already stays where it is, however often it is looked at."""
    in_line = hold.tool is not None and row.held_by == hold.tool
    return row.wake_at if in_line and row.wake_at is not None and row.wake_at > now else None


def _over_all_workers(limits: Limits) -> bool:
    return limits.in_flight is not None or limits.starts_per_minute is not None


def _reached(limit: int | None, count: int) -> bool:
    return limit is not None and count >= limit


def _tool(row: StepRow) -> str:
    return pinned.tool_version(row.tool_version_id).name
