"""Speaks the worker's verbs: claims calls and reports outcomes, on the real journal and the real database.

The calls themselves are not made: a test says how each went, which is exactly what a hand does.
"""

from __future__ import annotations

import uuid
from typing import Any

from django.contrib.auth.models import User

from approvals.decisions import decide
from approvals.models import Decision
from checkpoint import journal, leases
from checkpoint.contracts import Contract, RecoveryClass, Reversibility, Variant
from checkpoint.models import Activity, Case, Step, WorkerProcess, Workflow
from checkpoint.outcomes import Outcome
from checkpoint.states import Decision as DecisionKind
from checkpoint.tool_versions import Declaration
from checkpoint.turns.calls import Claim, Report, Worker
from tests.submissions import INVOICE_SCHEMA, document, plan_of, published, submit_plan

DEADLINE, SETTLE = 30.0, 5.0


def contract(recovery: RecoveryClass, **promises: Any) -> Contract:
    """A contract with known times."""
    known: dict[str, Any] = {"deadline": DEADLINE, "settle": SETTLE, "reversibility": Reversibility.COMPENSABLE}
    return Contract(recovery=recovery, **known | promises)


KEYED = contract(RecoveryClass.IDEMPOTENT)
QUERYABLE = contract(RecoveryClass.QUERYABLE, can_inspect=True)
VERIFIABLE = contract(RecoveryClass.QUERYABLE, can_inspect=True, can_verify=True)
OPAQUE = contract(RecoveryClass.OPAQUE, reversibility=Reversibility.IRREVERSIBLE)
READ_ONLY = contract(RecoveryClass.READ_ONLY, reversibility=Reversibility.NONE_NEEDED)


class JournalDriver:
    """One worker process as the journal sees it."""

    def __init__(self, *tools: str) -> None:
        self.worker = Worker(uuid.uuid4(), frozenset(tools or ("effect@1",)))
        leases.register(
            WorkerProcess(
                id=self.worker.id,
                lock_key=self.worker.id.int % 2**62,
                host="tests",
                boot_id="boot",
                pid=1,
                tools=sorted(self.worker.tools),
            )
        )

    def turn(self, *reports: Report, hands: int = 10) -> list[Claim]:
        """One turn of the loop."""
        return journal.take_turn(reports, worker=self.worker, hands=hands)

    def claim(self, activity: Activity = Activity.EXECUTE) -> Claim:
        """Claims the one call that is ready."""
        (claim,) = self.turn()
        assert claim.activity is activity
        return claim

    def report(self, claim: Claim, outcome: Outcome) -> list[Claim]:
        """Reports how a call went; returns what may run next."""
        return self.turn(Report(claim, outcome))


def effect(name: str = "effect", **arguments: Any) -> dict[str, Any]:
    """A step with the tool that `submit` publishes."""
    return {"name": name, "tool": "effect", "arguments": {"customer": "acme", "cents": 1} | arguments}


def submit(promises: Contract, *steps: dict[str, Any], user: User | None = None) -> Workflow:
    """Submits a workflow of a tool with this contract, in the name of the account if one is given."""
    declared = Declaration("effect", "1", "An effect.", INVOICE_SCHEMA, (Variant("only", promises),))
    tools = published(declared)
    return submit_plan(plan_of(document(*(steps or (effect(),))), tools), user)


def step(workflow: Workflow, name: str = "effect") -> Step:
    """A step as it is now."""
    return Step.objects.get(workflow=workflow, name=name)


def case(workflow: Workflow) -> Case:
    """The only question that was ever asked about the workflow."""
    return Case.objects.get(workflow=workflow)


def answer(asked: Case, kind: DecisionKind, *, reason: str = "looked it up", operation_id: str = "") -> Decision:
    """A person decides on what the case shows now."""
    person = User.objects.filter(is_superuser=True).first() or User.objects.create_superuser("person")
    seen = Step.objects.get(pk=asked.step_id)
    decision = decide(
        case_id=asked.pk, kind=kind, person=person, channel="command", reason=reason, operation_id=operation_id,
        step_version=seen.version, arguments_hash=seen.arguments_hash,
    )  # fmt: skip
    assert isinstance(decision, Decision)
    return decision
