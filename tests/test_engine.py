"""The loop and its hands: what it costs, and that one bad outcome or one bad tool holds nobody else up."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator, Sequence
from typing import Any, ClassVar

import psycopg
import pytest
from pydantic import BaseModel, ConfigDict

from checkpoint.config.embedded_postgres import Addresses
from checkpoint.contracts import Contract, RecoveryClass, Reversibility, Variant
from checkpoint.models import AuditEntry, Step, WorkerProcess, Workflow
from checkpoint.outcomes import Absent, Inspection, NotApplied, Receipt, Verification, Visible
from checkpoint.states import StepStatus, WorkflowStatus
from checkpoint.tool_versions import newest_tools
from tests.submissions import document, plan_of, submit_plan
from workers import publishing
from workers.engine import Engine
from workers.heartbeat import Heartbeat
from workers.registry import Call, Deadline, label

Act = Callable[[Any, Call], Receipt]


class Arguments(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)
    number: int = 0


class Scripted:
    """A tool that does what the test says."""

    name: ClassVar[str] = "scripted"
    version: ClassVar[str] = "1"
    summary: ClassVar[str] = "Does what the test says."
    Arguments: ClassVar[type[BaseModel]] = Arguments

    def __init__(self, act: Act) -> None:
        self.act = act

    def variants(self) -> Sequence[Variant]:
        contract = Contract(
            RecoveryClass.QUERYABLE, Reversibility.COMPENSABLE, can_inspect=True, can_verify=True, settle=0.0
        )
        return [Variant("only", contract)]

    def execute(self, arguments: Any, call: Call) -> Receipt:
        return self.act(arguments, call)

    def inspect(self, arguments: Any, call: Call) -> Inspection:
        return Absent()

    def verify(self, arguments: Any, call: Call) -> Verification:
        return Visible()


Run = Callable[..., Workflow]


@pytest.fixture
def run(database: Addresses) -> Iterator[Run]:
    """Submits steps (name, position, arguments), runs the engine until it is idle, returns the workflow."""
    heartbeats: list[Heartbeat] = []

    def go(act: Act, *steps: dict[str, Any], tool: type[Scripted] = Scripted) -> Workflow:
        publishing.publish([Scripted(act)])
        return work(tool(act), *steps)

    def work(tool: Scripted, *steps: dict[str, Any]) -> Workflow:
        heartbeat = Heartbeat([label(tool)])
        engine = Engine(heartbeat.start(), {tool.name: tool}, hands=4)
        heartbeats.append(heartbeat)
        workflow = submit_plan(plan_of(document(*steps), newest_tools()))
        engine.run_until_idle()
        engine.close()
        workflow.refresh_from_db()
        return workflow

    yield go
    for heartbeat in heartbeats:
        heartbeat.stop()


def scripted(name: str, **more: Any) -> dict[str, Any]:
    return {"name": name, "tool": "scripted", "arguments": {}, **more}


def test_a_lone_sequential_workflow_costs_two_commits_a_step(run: Run) -> None:
    """Every commit that writes has one time of its own in the audit trail; one of them is the submission."""
    workflow = run(lambda arguments, call: Receipt(), *(scripted(f"step_{n}") for n in range(10)))
    assert workflow.status == WorkflowStatus.COMPLETED
    times = AuditEntry.objects.filter(stream_id=workflow.pk).values_list("at", flat=True)
    assert len(set(times)) - 1 <= 2 * 10 + 1


def test_every_attempt_sends_the_same_key_under_a_higher_fence(run: Run) -> None:
    calls: list[Call] = []

    def act(arguments: Any, call: Call) -> Receipt:
        calls.append(call)
        raise NotApplied("busy", retry_after=0)

    run(act, scripted("one"))
    assert len({call.key for call in calls}) == 1
    assert [call.attempt for call in calls] == sorted({call.attempt for call in calls})
    assert [call.fence for call in calls] == sorted({call.fence for call in calls})


@pytest.mark.parametrize(
    "wrong",
    [
        Receipt(facts={"number": float("nan")}),
        Receipt(facts={"text": "\x00"}),
        Receipt(operation_id="\ud800"),
        "not an outcome",
    ],
    ids=["nan", "nul", "surrogate", "type"],
)
def test_an_answer_that_cannot_be_stored_leaves_the_outcome_unknown(run: Run, wrong: Any) -> None:
    workflow = run(lambda arguments, call: wrong, scripted("one"))
    assert Step.objects.get(workflow=workflow).status == StepStatus.STARTED
    (attempt,) = Step.objects.get(workflow=workflow).attempts.all()
    assert (attempt.ending, attempt.applied) == ("unknown", None)


def test_arguments_that_the_tool_cannot_read_are_a_refusal_because_nothing_was_sent(run: Run) -> None:
    class Other(Scripted):
        class Arguments(BaseModel):
            model_config = ConfigDict(extra="forbid", strict=True)
            letter: str

    workflow = run(lambda arguments, call: Receipt(), scripted("one"), tool=Other)
    (attempt,) = Step.objects.get(workflow=workflow).attempts.all()
    assert (attempt.ending, attempt.applied) == ("refused", False)


def test_an_exception_with_hostile_text_is_recorded(run: Run) -> None:
    def act(arguments: Any, call: Call) -> Receipt:
        raise RuntimeError("\x00\ud800" + "x" * 10_000)

    workflow = run(act, scripted("one"))
    (attempt,) = Step.objects.get(workflow=workflow).attempts.all()
    assert attempt.detail.startswith("RuntimeError: \ufffd?")
    assert len(attempt.detail) <= 2000


def test_one_outcome_that_cannot_be_recorded_delays_no_other(run: Run, database: Addresses) -> None:
    """The database refuses the evidence of one step; the set is bisected until only that step is left."""
    refuse = f"refuse_{uuid.uuid4().hex}"
    with psycopg.connect(database.superuser, autocommit=True) as owner:
        owner.execute(
            f"CREATE FUNCTION {refuse}() RETURNS trigger LANGUAGE plpgsql AS"
            " $$ BEGIN IF NEW.facts LIKE '%poison%' THEN RAISE 'poison'; END IF; RETURN NEW; END $$"
        )
        owner.execute(
            f"CREATE TRIGGER {refuse} BEFORE INSERT ON checkpoint_evidence FOR EACH ROW EXECUTE FUNCTION {refuse}()"
        )
        try:
            batch = [scripted(f"step_{n}", position=1, arguments={"number": n}) for n in range(4)]
            run(_poison_number_two, *batch)
        finally:
            owner.execute(f"DROP FUNCTION {refuse}() CASCADE")
    statuses = dict(Step.objects.values_list("name", "status"))
    assert statuses.pop("step_2") == StepStatus.STARTED
    assert set(statuses.values()) == {StepStatus.VERIFIED}


def _poison_number_two(arguments: Any, call: Call) -> Receipt:
    return Receipt(facts={"text": "poison" if arguments.number == 2 else "fine"})


def test_a_call_whose_deadline_passed_before_it_began_sends_nothing() -> None:
    with pytest.raises(NotApplied) as refusal:
        Deadline.after(-1).check_before_send()
    assert refusal.value.code == "deadline_before_send"


def test_a_process_that_stops_in_good_order_is_marked_as_stopped(run: Run) -> None:
    run(lambda arguments, call: Receipt(), scripted("one"))
    assert WorkerProcess.objects.filter(ended_at=None).count() == 1
