"""The worker's verbs. One turn is one transaction: record what came back, claim what may run next.

Sets go through it, so that one commit serves many workflows, and a lone sequential step still costs two commits: its
receipt, and its verification together with the next step's start.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from checkpoint import clock, crash_points
from checkpoint.agents import agent_waits
from checkpoint.people import ENGINE
from checkpoint.rows import workflow_rows
from checkpoint.rows.workflow_rows import WorkflowRow
from checkpoint.transactions import one_transaction
from checkpoint.transitions import Changes
from checkpoint.turns import claiming, recording
from checkpoint.turns.calls import Claim, Report, Worker


@one_transaction
def take_turn(
    reports: Sequence[Report],
    *,
    worker: Worker,
    hands: int,
    before_commit: Callable[[list[Claim]], None] = lambda claims: None,
) -> list[Claim]:
    """Records the reports and claims calls for the free hands.

    Recording waits for locked workflows; claiming skips them. A report under an old fence changes no state: it is
    kept as evidence (S07). Crash points: before the commit nothing of the turn happened; after it, all of it did.

    Args:
        reports: what the hands brought back since the last turn.
        worker: who acts, and which tools it has.
        hands: how many calls it can take, those of the reports included.
        before_commit: is told the claims before they count. It must not fail, wait, or touch the database.

    Returns:
        The calls to make, each under its fence. Verifications that follow a receipt come first.
    """
    locked = workflow_rows.lock(report.claim.workflow_id for report in reports) if reports else []
    spare = hands - len(locked)
    due = _lock_waiting(reports, spare) if spare > 0 else []
    if not locked and not due:
        return []
    changes = Changes({row.id: row for row in (*due, *locked)}, ENGINE, clock.now())
    kept = recording.record(changes, reports)
    agent_waits.ask_overdue(changes)
    changes.write_steps()
    claims = claiming.claim(changes, worker, limit=hands - len(kept))
    changes.finish()
    before_commit([*kept, *claims])
    reach_points("before_commit", reports, [*kept, *claims])
    return [*kept, *claims]


def _lock_waiting(reports: Sequence[Report], spare: int) -> list[WorkflowRow]:
    """Locks what waits: first for the places that these reports leave, then what is due."""
    leave = [report.claim.tool for report in reports if report.claim.limited]
    held = workflow_rows.lock_held(leave, min(len(leave), spare)) if leave else []
    return [*held, *workflow_rows.lock_due(spare)]


def reach_points(where: str, reports: Sequence[Report], claims: Sequence[Claim]) -> None:
    """Tells the crash points of a turn's edge what the turn recorded and claimed."""
    if crash_points.armed:
        for report in reports:
            crash_points.reach(f"{where}/record_{report.claim.activity.value}", report.claim.step_name)
        for claim in claims:
            crash_points.reach(f"{where}/claim_{claim.activity.value}", claim.step_name)
