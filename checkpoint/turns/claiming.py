"""The second half of a turn: for each step whose turn it is, do what `decide.next_action` says."""

from __future__ import annotations

import logging
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta

from checkpoint import fencing
from checkpoint.actions import Action, Ask, ConcludeFailed, ConcludeVerified, Inspect, Start, Verify, Wait
from checkpoint.agents import agent_waits
from checkpoint.decide import next_action
from checkpoint.errors import RecordDamaged
from checkpoint.gates import start_times, step_rulings
from checkpoint.gates.drift import Drift
from checkpoint.gates.gatekeeping import Gatekeeper
from checkpoint.gates.limiting import Limiter
from checkpoint.models import Activity, Ending
from checkpoint.rows import attempt_log, evidence_log, step_rows
from checkpoint.rows.attempt_log import AttemptRow
from checkpoint.rows.step_rows import StepRow
from checkpoint.states import CASE_RULES, CaseReason, StepStatus
from checkpoint.transitions import Changes
from checkpoint.turns import batches, human_tasks, intents, live_workers, pinned, preparation, verdicts
from checkpoint.turns.calls import Claim, Worker, claim_of

log = logging.getLogger(__name__)

OTHER_WORKER_WAIT = timedelta(seconds=5)
UNDECIDABLE_WAIT = timedelta(seconds=60)

# Where the effect may be in the world already, the question is about the effect and not about the tool.
_WITHOUT_TOOL = {
    StepStatus.STARTED: CaseReason.INSPECTION_INCONCLUSIVE,
    StepStatus.COMMITTED: CaseReason.EFFECT_NOT_VISIBLE,
}


def claim(changes: Changes, worker: Worker, *, limit: int) -> list[Claim]:
    """Claims at most `limit` calls on the locked workflows; settles on the way what needs no call."""
    if limit <= 0:
        return []
    limiter = Limiter(changes)
    claims: list[Claim] = []
    seen: list[uuid.UUID] = []
    while wanted := limit - len(claims):
        rows = step_rows.ready(changes.workflows, now=changes.now, limit=wanted, seen=seen, full=limiter.full)
        if any(row.intent_name for row in rows):
            rows.sort(key=lambda row: intents.order(row, changes.workflows[row.workflow_id].team_id))
        found_full = len(limiter.full)
        claims += _Claimer(changes, worker, limiter, Gatekeeper(changes, [row.id for row in rows])).act_on(rows)
        if len(rows) < wanted or len(limiter.full) == found_full:
            break
        # What got no place must not keep out what needs none.
        seen += [row.id for row in rows]
        changes.write_steps()
    limiter.close(all_seen=len(claims) < limit)
    return claims


def claim_for_agent(changes: Changes, worker: Worker, row: StepRow) -> Claim | None:
    """Claims the one step for the agent that carries it out, with every check that a worker's claim has.

    What stands in the way is written down as it is in a worker's claim: a request for approval, a case, a wait.
    """
    limiter = Limiter(changes)
    claims = _Claimer(changes, worker, limiter, Gatekeeper(changes, [row.id])).act_on([row])
    limiter.close(all_seen=True)
    return next(iter(claims), None)


@dataclass(frozen=True)
class _Claimer:
    changes: Changes
    worker: Worker
    limiter: Limiter
    gatekeeper: Gatekeeper

    @property
    def now(self) -> datetime:
        return self.changes.now

    def act_on(self, rows: list[StepRow]) -> list[Claim]:
        """Does the next action on each step; returns the calls that they need."""
        stored = attempt_log.of_steps([row.id for row in rows if row.attempt_count])
        claims: list[Claim | None] = []
        starting: list[tuple[StepRow, list[AttemptRow]]] = []
        failed: list[batches.Failed] = []
        for row in rows:
            attempts = stored.get(row.id, [])
            action = self._decide(row, attempts)
            if isinstance(action, Start):
                starting.append((row, attempts))
            elif action == Ask(CaseReason.RETRIES_EXHAUSTED):
                failed.append((row, attempts))
            elif action is not None:
                claims.append(self._carry_out(action, row, attempts))
        batches.settle(self.changes, failed)
        claims += self._start_all([(row, attempts) for row, attempts in starting if self._goes_on(row)])
        return [claim for claim in claims if claim is not None]

    def _goes_on(self, row: StepRow) -> bool:
        """Not where this very turn has begun to wind the workflow down; what may have been sent is settled even so."""
        return row.status is StepStatus.STARTED or not self.changes.workflows[row.workflow_id].winding_down

    def _start_all(self, starting: list[tuple[StepRow, list[AttemptRow]]]) -> Iterator[Claim | None]:
        """All at once and last, because limits are locked in one order, and what else was decided may leave places."""
        if runnable := [row for row, _ in starting if self._label(row) in self.worker.tools]:
            self.limiter.consider(runnable, self.gatekeeper.in_force)
        for row, attempts in starting:
            yield self._carry_out(Start(), row, attempts)

    def _decide(self, row: StepRow, attempts: list[AttemptRow]) -> Action | None:
        """What is to be done with a step whose turn it is; None where it cannot be prepared."""
        if row.lease_holder_id is not None:
            self._take_over(row, row.lease_holder_id, attempts)
        if row.status is StepStatus.PLANNED:
            self._prepare(row)
        if row.status in (StepStatus.PLANNED, StepStatus.ABANDONED):
            return None
        return self._next_action(row, attempts)

    @staticmethod
    def _label(row: StepRow) -> str:
        return str(pinned.tool_version(row.tool_version_id))

    def _next_action(self, row: StepRow, attempts: list[AttemptRow]) -> Action:
        """A step that cannot be decided (a defect of ours) waits, so that it holds nobody else up."""
        try:
            policy = step_rulings.budgets(self.changes.workflows[row.workflow_id], row)
            return next_action(verdicts.step_facts(row, attempts), pinned.contract(row), policy, self.now)
        except (ArithmeticError, LookupError, TypeError, ValueError):
            log.exception("step %s of workflow %s cannot be decided", row.name, row.workflow_id)
            return Wait(self.now + UNDECIDABLE_WAIT)

    def _take_over(self, row: StepRow, holder: uuid.UUID, attempts: list[AttemptRow]) -> None:
        """The lease is over and nobody reported: what the holder did is unknown until it is looked up."""
        self.changes.touch(row)
        was_doing = row.activity
        fencing.overrule(row)
        if was_doing == Activity.INSPECT:
            row.inspection_count += 1  # a lookup that never comes back must not be repeated for ever
        if was_doing == Activity.EXECUTE:
            for attempt in attempts:
                if attempt.ended_at is None:
                    attempt.end(Ending.LOST, applied=None, detail="its worker stopped answering", now=self.now)
                    self.changes.end_attempt(attempt)
        self.changes.note(row, "take_over", details={"from_worker": str(holder), "fence": row.fence})

    def _prepare(self, row: StepRow) -> None:
        workflow = self.changes.workflows[row.workflow_id]
        problem = preparation.prepare(row, workflow)
        if problem is None:
            self.changes.move(row, StepStatus.PREPARED, verb="prepare", arguments_hash=row.arguments_hash)
        elif problem.lacking:
            batches.waive_dependent(self.changes, row, problem.lacking)
        else:
            self._ask(row, problem.reason, [], note=problem.note)

    def _carry_out(self, action: Action, row: StepRow, attempts: list[AttemptRow]) -> Claim | None:
        match action:
            case Start() if row.by_agent and not self.worker.is_agent:
                agent_waits.leave_to_agent(self.changes, self.gatekeeper, row, attempts)
                return None
            case Start():
                if row.intent_name and row.status is StepStatus.PREPARED and not self._may_bring_about(row):
                    return None
                return self._with_tool(row, attempts, lambda: self._start_if_admitted(row, attempts))
            case Inspect() | Verify() if self.worker.is_agent:
                return None  # by another path than the agent's: a worker's
            case Inspect():
                return self._with_tool(row, attempts, lambda: self._acquire(row, Activity.INSPECT))
            case Verify():
                return self._with_tool(row, attempts, lambda: self._acquire(row, Activity.VERIFY))
        self._conclude(action, row, attempts)
        return None

    def _may_bring_about(self, row: StepRow) -> bool:
        """Whether the effect that the step names is its own to bring about; if not, it waits or has the receipt now."""
        answer = intents.proceed(self.changes, row)
        if isinstance(answer, intents.Refusal):
            self._ask(row, answer.reason, [], note=answer.note)
            return False
        return answer

    def _conclude(self, action: Action, row: StepRow, attempts: list[AttemptRow]) -> None:
        """The actions that need no call."""
        match action:
            case ConcludeVerified():
                verdicts.conclude_verified(self.changes, row)
            case ConcludeFailed(why):
                verdicts.conclude_failed(self.changes, row, attempts, why)
            case Ask(reason):
                self._ask(row, reason, attempts)
            case Wait(until):
                self.changes.touch(row).next_at = until

    def _start_if_admitted(self, row: StepRow, attempts: list[AttemptRow]) -> Claim | None:
        try:
            if not start_times.has_come(self.changes, row):
                return None
            if drift := self.gatekeeper.to_review(row):
                self._review(row, drift, attempts)
                return None
            return self._start_or_ask(row)
        except (RecordDamaged, LookupError, TypeError, ValueError):
            log.exception("the policy in force or the step's time cannot be read, so step %s does not start", row.name)
            self.changes.touch(row).next_at = self.now + UNDECIDABLE_WAIT
            return None

    def _start_or_ask(self, row: StepRow) -> Claim | None:
        """A question to a person takes no place among the calls in flight."""
        if not pinned.contract(row).asks:
            return self._start(row) if self.gatekeeper.admits(row, self.limiter.take_place) else None
        if self.gatekeeper.admits(row, lambda _: True):
            human_tasks.ask(self.changes, row)
        return None

    def _review(self, row: StepRow, drift: Drift, attempts: list[AttemptRow]) -> None:
        """A person looks. What was sent may have taken effect: then that is the question before any other."""
        if row.status is StepStatus.STARTED:
            note = f"It is not sent again by itself: {CASE_RULES[drift.reason].title.lower()}. {drift.note}".rstrip()
            self._ask(row, CaseReason.OUTCOME_UNKNOWN, attempts, note=note)
        else:
            self._ask(row, drift.reason, attempts, note=drift.note)

    def _start(self, row: StepRow) -> Claim:
        """Takes the next fence and writes the attempt ahead of the call."""
        self.changes.touch(row)
        fencing.acquire(row, holder=self.worker.id, activity=Activity.EXECUTE, now=self.now)
        row.attempt_count += 1
        row.inspection_count = 0
        row.next_at = None
        deadline_at = self.now + timedelta(seconds=pinned.contract(row).deadline)
        self.changes.begin_attempt(
            attempt_log.begin(
                row.id, row.attempt_count, row.fence, self.worker.id, now=self.now, deadline_at=deadline_at
            )
        )
        if row.status is StepStatus.STARTED:
            self.changes.note(row, "send_again", details={"fence": row.fence, "attempt": row.attempt_count})
        else:
            self.changes.move(row, StepStatus.STARTED, verb="start", attempt=row.attempt_count)
        return claim_of(row, Activity.EXECUTE, now=self.now, limited=self.limiter.is_limited(row))

    def _acquire(self, row: StepRow, activity: Activity) -> Claim:
        self.changes.touch(row)
        fencing.acquire(row, holder=self.worker.id, activity=activity, now=self.now)
        row.next_at = None
        facts = evidence_log.facts_of(row.receipt_id) if activity is Activity.VERIFY else ""
        return claim_of(row, activity, now=self.now, facts=facts)

    def _with_tool(self, row: StepRow, attempts: list[AttemptRow], make: Callable[[], Claim | None]) -> Claim | None:
        """Makes the claim if this worker has the tool; leaves it to a live worker that has it; else asks."""
        label = self._label(row)
        if label in self.worker.tools:
            return make()
        if live_workers.any_has(label):
            self.changes.touch(row).next_at = self.now + OTHER_WORKER_WAIT
        else:
            self._ask(
                row, _WITHOUT_TOOL.get(row.status, CaseReason.TOOL_CHANGED), attempts, note=f"No worker has {label}."
            )
        return None

    def _ask(self, row: StepRow, reason: CaseReason, attempts: list[AttemptRow], *, note: str = "") -> None:
        verdicts.open_case(self.changes, row, reason, attempts, note=note)
