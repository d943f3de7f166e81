"""Fifty people on one case, and fifty cases through a restart: one result, and none lost (S19, S20)."""

from __future__ import annotations

from datetime import timedelta
from functools import partial

import pytest
from django.contrib.auth.models import User
from django.db import connections

from approvals.casework import assignments, comments, snoozes
from approvals.decisions import Answered, decide
from approvals.models import Comment, Decision, Notice, Signature
from checkpoint import audit
from checkpoint.config.embedded_postgres import Server
from checkpoint.errors import CaseClosed, StaleView
from checkpoint.models import AuditEntry, Case, Evidence, Step
from checkpoint.states import CaseStatus, StepStatus
from checkpoint.states import Decision as DecisionKind
from tests import factories
from tests.case_driver import at_once, entries, put_in_force, raised, worker

pytestmark = pytest.mark.usefixtures("database")

FIFTY = 50


def answer(case: Case, kind: DecisionKind, person: User) -> Answered:
    seen = Step.objects.get(pk=case.step_id)
    return decide(
        case_id=case.pk, kind=kind, person=person, channel="console", reason="I looked.",
        step_version=seen.version, arguments_hash=seen.arguments_hash,
    )  # fmt: skip


def test_s19_of_fifty_people_who_decide_one_case_at_once_exactly_one_does() -> None:
    requester = factories.person("ann", teams=[factories.team()])
    User.objects.filter(pk=requester.pk).update(email="ann@example.com")
    workflow = factories.workflow(submitted_by=requester)
    case = factories.case(factories.step(workflow, StepStatus.UNCERTAIN))
    kinds = (DecisionKind.CONFIRM, DecisionKind.RETRY, DecisionKind.ABANDON)
    people = [worker(case, f"person{number}") for number in range(FIFTY)]
    presses = [partial(answer, case, kinds[number % 3], person) for number, person in enumerate(people)]
    outcomes = at_once(*presses)
    (decision,) = [outcome for outcome in outcomes if isinstance(outcome, Decision)]
    refused = raised(outcomes)
    assert len(refused) == FIFTY - 1
    assert {type(refusal) for refusal in refused} <= {CaseClosed, StaleView}
    assert Decision.objects.get() == decision
    assert Case.objects.get().status == CaseStatus.DECIDED
    assert len(entries(case, "decide")) == 1
    assert Evidence.objects.filter(kind="attestation").count() == (0 if decision.kind == "abandon" else 1)
    assert Notice.objects.filter(kind="decided").count() == 1, "nobody is told twice"
    assert list(audit.broken_links()) == []


def test_s20_fifty_cases_and_all_that_people_did_about_them_outlast_a_restart(database_server: Server | None) -> None:
    if database_server is None:
        pytest.skip("the database server is not ours to restart")
    rule = {"confirm": {"needed": 2}, "abandon": {}}
    put_in_force({"rules": [{"name": "two", "set": {"decisions": {"outcome_unknown": rule}}}]})
    cases = [factories.case() for _ in range(FIFTY)]
    ada, grace = worker(cases[0]), worker(cases[0], "grace")
    for case in cases:
        assignments.claim(case_id=case.pk, person=ada, channel="console")
        comments.comment(case_id=case.pk, person=ada, channel="console", text="The bank answers on Monday.")
        answer(case, DecisionKind.CONFIRM, ada)
        snoozes.snooze(case_id=case.pk, lasting=timedelta(hours=1), person=ada, channel="console", reason="Monday")
    written = AuditEntry.objects.count()
    connections.close_all()
    database_server.stop()
    database_server.start()
    assert Case.objects.filter(status=CaseStatus.OPEN).count() == Signature.objects.count() == FIFTY
    assert (Comment.objects.count(), AuditEntry.objects.count()) == (FIFTY, written)
    for case in cases:
        assert snoozes.current(case) is not None
        assert assignments.current(case) is not None
        assert isinstance(answer(case, DecisionKind.CONFIRM, grace), Decision)
    assert Case.objects.filter(status=CaseStatus.DECIDED).count() == FIFTY
    assert list(audit.broken_links()) == []
