"""Two people answer one case in the same moment: one answer counts, and nothing happens twice."""

from __future__ import annotations

import threading

import pytest
from django.contrib.auth.models import User
from django.db import connection

from approvals.decisions import Answered, decide
from approvals.models import Decision
from checkpoint import audit
from checkpoint.errors import CaseClosed, StaleView
from checkpoint.models import AuditEntry, Case, Evidence, Step
from checkpoint.states import CaseStatus, StepStatus
from checkpoint.states import Decision as DecisionKind
from tests import factories

pytestmark = pytest.mark.usefixtures("database")


def test_s19_of_two_people_who_answer_at_once_one_counts_and_the_other_learns_who() -> None:
    case = factories.case()
    people = [
        factories.person(name, groups=["Approver"], teams=[case.workflow.team]) for name in ("ada", "grace", "joan")
    ]
    together, counted, told = threading.Barrier(len(people)), list[Answered](), list[str]()

    def press(person: User, kind: DecisionKind) -> None:
        together.wait(timeout=30)
        try:
            counted.append(
                decide(
                    case_id=case.pk, kind=kind, person=person, channel="console", reason="I looked.",
                    step_version=case.step_version, arguments_hash=case.arguments_hash,
                )
            )  # fmt: skip
        except (CaseClosed, StaleView) as refusal:
            told.append(str(refusal))
        finally:
            connection.close()

    kinds = (DecisionKind.CONFIRM, DecisionKind.RETRY, DecisionKind.CONFIRM)
    threads = [threading.Thread(target=press, args=pair) for pair in zip(people, kinds, strict=True)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    (decision,) = counted
    assert Decision.objects.get() == decision
    assert len(told) == 2
    assert all(f"{decision.person_name} already decided" in refusal for refusal in told)
    step = Step.objects.get(pk=case.step_id)
    assert step.status == (StepStatus.COMMITTED if decision.kind == "confirm" else StepStatus.FAILED)
    assert Case.objects.get().status == CaseStatus.DECIDED
    assert Evidence.objects.filter(step=step, kind="attestation").count() == 1
    assert AuditEntry.objects.filter(stream_id=case.workflow_id, verb="decide").count() == 1
    assert list(audit.broken_links()) == []
