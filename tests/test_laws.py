"""What PostgreSQL refuses, in raw SQL, to the application and to the owner of the tables: the law beneath the code."""

from __future__ import annotations

import importlib
import re
import uuid
from collections.abc import Mapping
from typing import Any

import psycopg
import pytest
from django.contrib.auth.models import User

from approvals.models import Decision
from checkpoint import clock, laws
from checkpoint.config.embedded_postgres import Addresses
from checkpoint.config.environment import BASE_DIR
from checkpoint.models import Approval, Artifact, Case, Intent, Step, StoredBytes, Workflow
from checkpoint.states import (
    APPROVAL_ARROWS,
    APPROVAL_INITIAL,
    CASE_ARROWS,
    CASE_INITIAL,
    STEP_ARROWS,
    STEP_INITIAL,
    STEP_TERMINAL,
    WORKFLOW_ARROWS,
    WORKFLOW_INITIAL,
    WORKFLOW_TERMINAL,
    ApprovalStatus,
    CaseStatus,
    StepStatus,
    WorkflowStatus,
)
from tests import factories
from tests.law_driver import ACCEPTED, RawSession, application, raw, superuser

__all__ = ["application", "raw", "superuser"]

pytestmark = pytest.mark.usefixtures("database")

WORKFLOW, STEP, CASE, ATTEMPT = ("checkpoint_workflow", "checkpoint_step", "checkpoint_case", "checkpoint_attempt")
APPROVAL = "checkpoint_approval"
STREAM, DECISION = "checkpoint_auditstream", "approvals_decision"
S, W = StepStatus, WorkflowStatus
NOW = "2026-12-01T12:00:00Z"


def way_to[T: str](target: T, initial: frozenset[T], arrows: Mapping[T, frozenset[T]]) -> list[T]:
    """The shortest way from an initial state, without it."""
    ways: dict[T, list[T]] = {state: [] for state in initial}
    while target not in ways:
        ways |= {after: [*way, after] for at, way in ways.items() for after in arrows[at] if after not in ways}
    return ways[target]


def workflow_in(status: WorkflowStatus) -> Workflow:
    """A workflow with one step, which is verified, in that status."""
    made = factories.workflow()
    factories.step(made, S.VERIFIED)
    for target in way_to(status, WORKFLOW_INITIAL, WORKFLOW_ARROWS):
        Workflow.objects.filter(pk=made.pk).update(**of_workflow(target))
    return made


def of_workflow(status: WorkflowStatus) -> dict[str, Any]:
    """The columns that go with a workflow's status, so that nothing but the arrow can be refused."""
    return {"status": status.value, "ended_at": NOW if status in WORKFLOW_TERMINAL else None}


def of_step(step: Step) -> dict[str, Any]:
    """The columns that any status needs."""
    written = {"arguments": "{}", "arguments_hash": "h", "idempotency_key": "k", "variant": "only"}
    receipt = factories.evidence(step).pk
    return {"fence": step.fence + 1, "receipt_id": receipt, **(written if step.arguments is None else {})}


def case_in(status: CaseStatus) -> Case:
    """A case in that status."""
    made = factories.case()
    if status is CaseStatus.DECIDED:
        decision(made)
    if status is not CaseStatus.OPEN:
        Case.objects.filter(pk=made.pk).update(status=status, closed_at=clock.now())
    return made


def approval_in(status: ApprovalStatus) -> Approval:
    """A request for approval in that status."""
    step = factories.step(factories.workflow(), S.PREPARED)
    made = Approval.objects.create(
        workflow=step.workflow, step=step, rule={}, arguments_hash=step.arguments_hash, requested_at=clock.now(),
        policy_version=step.workflow.policy_version, tool_version=step.tool_version, expires_at=clock.now(),
    )  # fmt: skip
    for target in way_to(status, APPROVAL_INITIAL, APPROVAL_ARROWS):
        closed = {"closed_at": clock.now()} if not APPROVAL_ARROWS[target] else {}
        Approval.objects.filter(pk=made.pk).update(status=target, **closed)
    return made


# --- arrows


def test_a_workflow_moves_along_its_arrows_and_no_others(raw: RawSession) -> None:
    for source in W:
        row = workflow_in(source).pk
        answers = {target: raw.updates(WORKFLOW, row, **of_workflow(target)) for target in W if target is not source}
        assert answers == {
            target: ACCEPTED if target in WORKFLOW_ARROWS[source] else "legal_arrows_only" for target in answers
        }, source


def test_a_step_moves_along_its_arrows_and_no_others(raw: RawSession) -> None:
    for source in S:
        step = factories.step(factories.workflow(), source)
        other = of_step(step)
        answers = {t: raw.updates(STEP, step.pk, status=t.value, **other) for t in S if t is not source}
        wanted = {target: ACCEPTED if target in STEP_ARROWS[source] else "legal_arrows_only" for target in answers}
        if source is S.PREPARED:
            wanted[S.VERIFIED] = "receipt_is_owners"  # tests/test_intents.py has one that may
        assert answers == wanted, source


def test_a_case_moves_along_its_arrows_and_no_others(raw: RawSession) -> None:
    for source in CaseStatus:
        row = case_in(source).pk
        for target in set(CaseStatus) - {source}:
            closed = None if target is CaseStatus.OPEN else NOW
            answer = raw.updates(CASE, row, status=target.value, closed_at=closed)
            assert (answer == ACCEPTED) == (target in CASE_ARROWS[source]), (source, target)
            assert answer in (ACCEPTED, "legal_arrows_only", "closing_is_final")


def test_an_approval_moves_along_its_arrows_and_no_others(raw: RawSession) -> None:
    for source in ApprovalStatus:
        row = approval_in(source).pk
        answers = {to: raw.updates(APPROVAL, row, status=to.value) for to in ApprovalStatus if to is not source}
        assert answers == {to: ACCEPTED if to in APPROVAL_ARROWS[source] else "legal_arrows_only" for to in answers}, (
            source
        )


def test_an_approval_begins_as_a_request(raw: RawSession) -> None:
    row = approval_in(ApprovalStatus.WITHDRAWN).pk
    for status in ApprovalStatus:
        answer = raw.inserts_copy(APPROVAL, row, id=uuid.uuid4(), status=status.value)
        assert answer == (ACCEPTED if status in APPROVAL_INITIAL else "initial_states_only")


def test_a_workflow_begins_in_an_initial_state(raw: RawSession) -> None:
    row = factories.workflow().pk
    answers = {status: raw.inserts_copy(WORKFLOW, row, id=uuid.uuid4(), **of_workflow(status)) for status in W}
    assert answers == {w: ACCEPTED if w in WORKFLOW_INITIAL else "initial_states_only" for w in W}


def test_a_step_begins_in_an_initial_state(raw: RawSession) -> None:
    step = factories.step(factories.workflow(), S.PREPARED)
    other = {"id": uuid.uuid4(), "name": "other", **of_step(step), "receipt_id": None}
    answers = {status: raw.inserts_copy(STEP, step.pk, status=status.value, **other) for status in S}
    assert answers == {s: ACCEPTED if s in STEP_INITIAL else "initial_states_only" for s in S}


def test_a_case_begins_open(raw: RawSession) -> None:
    row = factories.case().pk
    for status in CaseStatus:
        other = {"id": uuid.uuid4(), "reason": "duplicate_effect", "closed_at": None if status in CASE_INITIAL else NOW}
        answer = raw.inserts_copy(CASE, row, status=status.value, **other)
        assert answer == (ACCEPTED if status in CASE_INITIAL else "initial_states_only")


# --- a workflow's end


@pytest.mark.parametrize("status", sorted(set(S) - {S.VERIFIED, S.SUPERSEDED}))
def test_a_workflow_with_a_step_that_is_not_verified_does_not_complete(raw: RawSession, status: StepStatus) -> None:
    workflow = workflow_in(W.VERIFYING)
    assert raw.updates(WORKFLOW, workflow.pk, **of_workflow(W.COMPLETED)) == ACCEPTED
    factories.step(workflow, status)
    assert raw.updates(WORKFLOW, workflow.pk, **of_workflow(W.COMPLETED)) == "completed_means_verified"


@pytest.mark.parametrize("status", S)
def test_a_workflow_is_abandoned_only_when_every_step_has_ended(raw: RawSession, status: StepStatus) -> None:
    """Not only what is in the air: a step that could still be started would be started in an ended workflow."""
    workflow = workflow_in(W.EXECUTING)
    factories.step(workflow, status)
    answer = raw.updates(WORKFLOW, workflow.pk, **of_workflow(W.ABANDONED))
    assert answer == (ACCEPTED if status in STEP_TERMINAL else "abandoned_means_settled")


def test_a_workflow_without_steps_does_not_complete(raw: RawSession) -> None:
    workflow = factories.workflow()
    for status in (W.EXECUTING, W.VERIFYING):
        Workflow.objects.filter(pk=workflow.pk).update(**of_workflow(status))
    assert raw.updates(WORKFLOW, workflow.pk, **of_workflow(W.COMPLETED)) == "completed_has_steps"
    factories.step(workflow, S.SUPERSEDED)
    assert raw.updates(WORKFLOW, workflow.pk, **of_workflow(W.COMPLETED)) == "completed_has_steps"
    factories.step(workflow, S.VERIFIED)
    assert raw.updates(WORKFLOW, workflow.pk, **of_workflow(W.COMPLETED)) == ACCEPTED


@pytest.mark.parametrize("ended", sorted(WORKFLOW_TERMINAL))
def test_no_step_enters_a_workflow_that_has_ended(raw: RawSession, ended: WorkflowStatus) -> None:
    workflow = workflow_in(W.VERIFYING)
    step = factories.step(workflow, S.VERIFIED)
    entering = {"id": uuid.uuid4(), "name": "late", "status": "prepared", "receipt_id": None}
    assert raw.inserts_copy(STEP, step.pk, **entering) == ACCEPTED
    Workflow.objects.filter(pk=workflow.pk).update(**of_workflow(ended))
    assert raw.inserts_copy(STEP, step.pk, **entering) == "ended_is_ended"


# --- what is fixed


def test_a_fence_rises_and_never_falls(raw: RawSession) -> None:
    step = factories.step(factories.workflow(), S.STARTED)
    assert raw.updates(STEP, step.pk, fence=step.fence + 1) == ACCEPTED
    assert raw.updates(STEP, step.pk, fence=step.fence - 1) == "fence_never_falls"


def test_versions_never_fall_so_that_no_stale_decision_fits_again(raw: RawSession) -> None:
    step = factories.step(factories.workflow(), S.STARTED)
    assert raw.updates(STEP, step.pk, version=step.version - 1) == "version_never_falls"
    assert raw.updates(WORKFLOW, step.workflow_id, version=0) == "version_never_falls"


def test_attempts_are_not_uncounted(raw: RawSession) -> None:
    step = factories.step(factories.workflow(), S.STARTED)
    assert raw.updates(STEP, step.pk, attempt_count=step.attempt_count - 1) == "attempts_never_fall"


@pytest.mark.parametrize("column", ["arguments", "arguments_hash", "idempotency_key"])
def test_what_is_written_ahead_does_not_change(raw: RawSession, column: str) -> None:
    planned = factories.step(factories.workflow(), S.PLANNED)
    assert raw.updates(STEP, planned.pk, **{column: "other"}) == ACCEPTED
    for status in (S.PREPARED, S.STARTED, S.VERIFIED):
        step = factories.step(factories.workflow(), status)
        assert raw.updates(STEP, step.pk, **{column: "other"}) == "written_ahead_is_fixed"
        assert raw.updates(STEP, step.pk, **{column: None}) == "written_ahead_is_fixed"


@pytest.mark.parametrize(
    ("table", "column", "value"),
    [
        *((STEP, column, value) for column, value in [
            ("id", uuid.uuid4()), ("workflow_id", uuid.uuid4()), ("position", 99), ("name", "x"), ("template", "{}"),
        ]),
        *((WORKFLOW, column, value) for column, value in [
            ("id", uuid.uuid4()), ("team_id", uuid.uuid4()), ("kind", "x"), ("goal", "x"), ("constraints", "[]"),
            ("input", "x"), ("input_hash", "x"),
        ]),
    ],
)  # fmt: skip
def test_what_was_submitted_does_not_change(raw: RawSession, table: str, column: str, value: Any) -> None:
    step = factories.step(factories.workflow(), S.STARTED)
    row = step.pk if table == STEP else step.workflow_id
    assert raw.updates(table, row, **{column: value}) == "identity_is_fixed"


def test_the_receipt_of_a_step_is_evidence_about_that_step(raw: RawSession) -> None:
    step, other = (factories.step(factories.workflow(), S.COMMITTED) for _ in range(2))
    assert raw.updates(STEP, step.pk, receipt_id=factories.evidence(step).pk) == ACCEPTED
    for receipt in (other.receipt_id, uuid.uuid4()):
        assert raw.updates(STEP, step.pk, receipt_id=receipt) == "receipt_of_own_step"
    started = factories.step(factories.workflow(), S.STARTED)
    assert raw.updates(STEP, started.pk, status="committed", receipt_id=other.receipt_id) == "receipt_of_own_step"


def test_a_step_begins_without_a_receipt(raw: RawSession) -> None:
    step = factories.step(factories.workflow())
    borrowed = {"id": uuid.uuid4(), "name": "other", "receipt_id": factories.evidence(step).pk}
    assert raw.inserts_copy(STEP, step.pk, **borrowed) == "begins_without_receipt"


def test_what_a_verified_step_came_to_stands(raw: RawSession) -> None:
    step = factories.step(factories.workflow(), S.VERIFIED)
    for column, value in {
        "standing": "attested", "operation_id": "op_9", "receipt_id": factories.evidence(step).pk,
        "attempts_allowed": 9, "attempt_count": 9, "committed_at": NOW, "verified_at": NOW,
    }.items():  # fmt: skip
        assert raw.updates(STEP, step.pk, **{column: value}) == "verified_stands", column
    free = {"version": step.version + 1, "next_at": NOW, "fence": step.fence + 1, "verification_count": 9}
    assert raw.updates(STEP, step.pk, **free) == ACCEPTED, "a late report is written down"


_AT_COMMIT = "SET CONSTRAINTS ALL IMMEDIATE"


def test_who_submitted_a_workflow_stays_known_until_the_account_is_erased(raw: RawSession) -> None:
    ada, eve = factories.person("ada"), factories.person("eve")
    of_ada, of_nobody = factories.workflow(submitted_by=ada).pk, factories.workflow().pk
    for row in (of_ada, of_nobody):
        assert raw.updates(WORKFLOW, row, submitted_by_id=eve.pk) == "submitter_is_fixed"
    cut = f"UPDATE {WORKFLOW} SET submitted_by_id = NULL WHERE id = %(row)s"
    assert raw.tries(cut, _AT_COMMIT, row=of_ada) == "submitter_is_erased"
    assert raw.tries(cut, "DELETE FROM auth_user WHERE id = %(ada)s", _AT_COMMIT, row=of_ada, ada=ada.pk) == ACCEPTED
    ada.delete()
    assert Workflow.objects.get(pk=of_ada).submitted_by_id is None


def test_a_case_is_decided_only_with_a_decision(raw: RawSession) -> None:
    case = factories.case()
    decide = f"UPDATE {CASE} SET status = 'decided', closed_at = now() WHERE id = %(row)s"
    assert raw.tries(decide, _AT_COMMIT, row=case.pk) == "decided_has_decision"
    decision(case)
    assert raw.tries(decide, _AT_COMMIT, row=case.pk) == ACCEPTED


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("id", uuid.uuid4()), ("step_id", uuid.uuid4()), ("number", 9), ("fence", 9), ("worker_id", uuid.uuid4()),
        ("started_at", NOW), ("deadline_at", NOW),
    ],
)  # fmt: skip
def test_an_attempt_stays_what_it_was_when_it_began(raw: RawSession, column: str, value: Any) -> None:
    attempt = factories.step(factories.workflow(), S.STARTED).attempts.get()
    assert raw.updates(ATTEMPT, attempt.pk, **{column: value}) == "body_is_fixed"


def test_how_an_attempt_ended_is_written_once(raw: RawSession) -> None:
    running = factories.step(factories.workflow(), S.STARTED).attempts.get()
    assert raw.updates(ATTEMPT, running.pk, ended_at=NOW, ending="lost", detail="gone") == ACCEPTED
    lost = factories.step(factories.workflow(), S.UNCERTAIN).attempts.get()
    for column, value in {"ended_at": NOW, "ending": "receipt", "detail": "it did answer"}.items():
        assert raw.updates(ATTEMPT, lost.pk, **{column: value}) == "ending_is_final"


def test_whether_an_attempt_took_effect_can_be_learnt_later_and_then_stands(raw: RawSession) -> None:
    lost = factories.step(factories.workflow(), S.UNCERTAIN).attempts.get()
    assert raw.updates(ATTEMPT, lost.pk, applied=True) == ACCEPTED
    refused = factories.step(factories.workflow(), S.FAILED).attempts.get()
    for value in (True, None):
        assert raw.updates(ATTEMPT, refused.pk, applied=value) == "ending_is_final"


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("id", uuid.uuid4()), ("workflow_id", uuid.uuid4()), ("step_id", uuid.uuid4()), ("reason", "tool_changed"),
        ("sentence", "x"), ("findings", "{}"), ("step_version", 99), ("arguments_hash", "x"), ("opened_at", NOW),
    ],
)  # fmt: skip
def test_a_question_stays_what_was_asked(raw: RawSession, column: str, value: Any) -> None:
    assert raw.updates(CASE, factories.case().pk, **{column: value}) == "question_is_fixed"


def test_how_a_case_was_closed_stands(raw: RawSession) -> None:
    case = case_in(CaseStatus.SETTLED)
    for column, value in {"closed_at": NOW, "closing": "otherwise"}.items():
        assert raw.updates(CASE, case.pk, **{column: value}) == "closing_is_final"


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("id", uuid.uuid4()), ("workflow_id", uuid.uuid4()), ("step_id", uuid.uuid4()), ("rule", "[]"),
        ("arguments_hash", "x"), ("policy_version_id", uuid.uuid4()), ("tool_version_id", uuid.uuid4()),
        ("requested_at", NOW), ("expires_at", NOW),
    ],
)  # fmt: skip
def test_what_approval_was_asked_for_does_not_change(raw: RawSession, column: str, value: Any) -> None:
    """Least of all what it is bound to, once it was given."""
    given = approval_in(ApprovalStatus.APPROVED)
    assert raw.updates(APPROVAL, given.pk, **{column: value}) == "request_is_fixed"


@pytest.mark.parametrize("status", [ApprovalStatus.CONSUMED, ApprovalStatus.REJECTED, ApprovalStatus.EXPIRED])
def test_how_an_approval_ended_stands(raw: RawSession, status: ApprovalStatus) -> None:
    ended = approval_in(status)
    for column, value in {"closed_at": NOW, "closing": "otherwise", "usable_from": NOW}.items():
        assert raw.updates(APPROVAL, ended.pk, **{column: value}) == "closing_is_final"


def test_the_head_of_an_audit_stream_only_goes_on(raw: RawSession) -> None:
    workflow = factories.workflow()
    factories.audited(workflow, "submit", "workflow")
    assert raw.updates(STREAM, workflow.pk, last_seq=2) == ACCEPTED
    assert raw.updates(STREAM, workflow.pk, last_seq=0) == "head_only_goes_on"
    assert raw.updates(STREAM, workflow.pk, last_hash="f" * 64) == "head_only_goes_on"
    assert raw.updates(STREAM, workflow.pk, name="other") == "head_only_goes_on"


# --- what is kept


def decision(case: Case | None = None) -> Decision:
    """An answer to the case, or to a new one."""
    return Decision.objects.create(
        case=case or factories.case(), kind="confirm", reason="seen", person=factories.person("ada"), person_name="ada",
        channel="console", step_version=1, arguments_hash="h", decided_at=clock.now(),
    )  # fmt: skip


def one_row_in_every_table() -> None:
    step = factories.step(factories.workflow(), S.COMMITTED)
    factories.audited(step.workflow, "submit", "workflow")
    Intent.objects.create(team=step.workflow.team, owner=step, key=step.idempotency_key, arguments_hash="h")
    StoredBytes.objects.create(sha256="0" * 64, size=1, path="x", named=True, brought_at=clock.now())
    Artifact.objects.create(workflow=step.workflow, name="x", media_type="text/plain", sha256="0" * 64, size=1)
    decision()
    approval_in(ApprovalStatus.PENDING)


KEPT = (*laws.APPEND_ONLY, *laws.NEVER_DELETED, DECISION, APPROVAL)


def test_nothing_of_the_record_can_be_deleted(raw: RawSession, application: RawSession) -> None:
    one_row_in_every_table()
    refusal = {"no right"} if raw.column("SELECT current_user")[0] == "checkpoint_app" else {"never_deleted"}
    for table in KEPT:
        assert raw.column(f"SELECT count(*) FROM {table}") != [0], table
        assert {raw.tries(f"DELETE FROM {table}")} == refusal, table


def test_nothing_of_the_record_can_be_truncated(raw: RawSession) -> None:
    refusal = "no right" if raw.column("SELECT current_user")[0] == "checkpoint_app" else "never_truncated"
    for table in KEPT:
        assert raw.tries(f"TRUNCATE {table} CASCADE") == refusal, table


def test_nothing_append_only_can_be_changed(raw: RawSession) -> None:
    one_row_in_every_table()
    refusal = "no right" if raw.column("SELECT current_user")[0] == "checkpoint_app" else "append_only"
    for table in laws.APPEND_ONLY:
        for column in raw.column(
            "SELECT column_name FROM information_schema.columns WHERE table_name = %(table)s", table=table
        ):
            assert raw.tries(f"UPDATE {table} SET {column} = {column}") == refusal, (table, column)


def test_a_decision_loses_its_person_and_nothing_else(raw: RawSession, application: RawSession) -> None:
    made = decision()
    other = User.objects.create_user("eve")
    refusals = {"no right", "append_only"}
    assert raw.updates(DECISION, made.pk, person_id=None) == ACCEPTED
    assert raw.updates(DECISION, made.pk, person_id=other.pk) == "append_only"
    for column in ("kind", "reason", "operation_id", "person_name", "channel", "arguments_hash"):
        assert raw.updates(DECISION, made.pk, **{column: "confirm"}) in refusals
        assert raw.updates(DECISION, made.pk, **{column: "retry"}, person_id=None) in refusals


def test_an_account_can_be_erased_and_its_decisions_keep_the_name() -> None:
    made = decision()
    User.objects.get(username="ada").delete()
    made.refresh_from_db()
    assert (made.person_id, made.person_name) == (None, "ada")


# --- above the law


@pytest.mark.parametrize(
    "statement",
    [
        "SET session_replication_role = replica",
        "SET LOCAL session_replication_role = replica",
        f"ALTER TABLE {STEP} DISABLE TRIGGER ALL",
        f"ALTER TABLE {STEP} DISABLE TRIGGER law_legal_arrows_only",
        f"DROP TRIGGER law_legal_arrows_only ON {STEP}",
        f"CREATE TRIGGER mine BEFORE UPDATE ON {STEP} EXECUTE FUNCTION suppress_redundant_updates_trigger()",
        f"CREATE RULE mine AS ON UPDATE TO {STEP} DO INSTEAD NOTHING",
        f"ALTER TABLE {STEP} RENAME TO away",
        f"DROP TABLE {STEP} CASCADE",
        "DROP FUNCTION checkpoint_refuse() CASCADE",
        "CREATE OR REPLACE FUNCTION checkpoint_refuse() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END'",
        "CREATE OR REPLACE FUNCTION checkpoint_now() RETURNS timestamptz LANGUAGE sql AS 'SELECT now()'",
        f"CREATE TEMPORARY TABLE {STEP} ()",
        "CREATE SCHEMA mine",
        "DELETE FROM django_migrations",
        "UPDATE django_migrations SET name = name",
        "INSERT INTO django_migrations (app, name, applied) VALUES ('checkpoint', '9999_mine', now())",
    ],
)
def test_the_application_cannot_get_above_the_law(application: RawSession, statement: str) -> None:
    assert application.tries(statement) == "no right"


def test_the_owner_cannot_put_the_triggers_to_sleep_by_a_setting(database: Addresses) -> None:
    with psycopg.connect(database.owner) as owner, pytest.raises(psycopg.errors.InsufficientPrivilege):
        owner.execute("SET session_replication_role = replica")


# --- the triggers in the database are those that laws.py makes of the table of arrows

_TRIGGERS = """
SELECT pg_get_triggerdef(t.oid) || ' ' || t.tgenabled::text || ' ' || p.prosrc FROM pg_trigger t
JOIN pg_class c ON c.oid = t.tgrelid JOIN pg_proc p ON p.oid = t.tgfoid
WHERE NOT t.tgisinternal AND c.relnamespace = 'public'::regnamespace ORDER BY 1
"""


class _Editor:
    """What a migration that makes laws needs of Django's schema editor."""

    def __init__(self, owner: psycopg.Connection) -> None:
        self.owner = owner
        self.made = 0

    def execute(self, statement: str, params: object = ()) -> None:
        self.owner.execute(statement.encode())
        self.made += len(re.findall("CREATE (?:CONSTRAINT )?TRIGGER", statement)) - statement.count("DROP TRIGGER law")


def test_the_database_has_exactly_the_triggers_that_the_tables_of_states_call_for(database: Addresses) -> None:
    """Every migration that makes laws makes them again, from the tables as they are now; nothing may differ."""
    with psycopg.connect(database.owner) as owner:
        installed = owner.execute(_TRIGGERS).fetchall()
        owner.execute(laws.uninstall().encode())
        every = [
            importlib.import_module(f"{app}.migrations.{file.stem}")
            for app in ("checkpoint", "approvals")
            for file in sorted((BASE_DIR / app / "migrations").glob("0*.py"))
        ]
        modules = [module for module in every if module.__name__.endswith("_laws") or hasattr(module, "LAWS")]
        for function in [name for module in modules for name in getattr(module, "FUNCTIONS", ())]:
            owner.execute(f"DROP FUNCTION {function}() CASCADE".encode())
        assert owner.execute(_TRIGGERS).fetchall() == [], "a trigger that no law calls for"
        editor = _Editor(owner)
        for module in modules:
            module.install(None, editor)
        assert owner.execute(_TRIGGERS).fetchall() == installed
        owner.rollback()
    assert editor.made == len(installed) > 50
