"""The OpenAPI document against the real server: schemathesis makes requests of it, right ones and wrong ones.

No answer is a server's error, and none has a status, a media type or a shape that the document does not name.
CHECKPOINT_API_EXAMPLES says how many requests of each kind are made for each operation; `make fuzz` makes more.
"""

from __future__ import annotations

import itertools
import os
from typing import Any
from uuid import UUID

import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi import checks

from checkpoint import artifacts, resume_packets
from checkpoint.models import Step
from checkpoint.states import StepStatus
from tests import factories
from tests import submissions as driver
from tests.api_driver import Api, token_of
from tests.approval_driver import pending, requested
from tests.submissions import ACTOR
from tests.test_api_document import written_down

pytestmark = pytest.mark.usefixtures("database")

EXAMPLES = int(os.environ.get("CHECKPOINT_API_EXAMPLES", "2"))
CHECKS = [
    not_a_server_error,
    checks.status_code_conformance,
    checks.content_type_conformance,
    checks.response_schema_conformance,
]
SETTINGS = settings(
    max_examples=EXAMPLES,
    deadline=None,
    database=None,
    derandomize="CHECKPOINT_API_EXAMPLES" not in os.environ,  # the same requests in every run, but for `make fuzz`
    suppress_health_check=list(HealthCheck),
)
Mode = schemathesis.GenerationMode
_number = itertools.count()


def world() -> tuple[str, dict[str, Any]]:
    """A token that may do everything, and what there is, by the names of the addresses' parameters."""
    team = factories.team("Billing")
    root = factories.person("root", teams=[team])
    root.is_superuser = True
    root.save()
    driver.published()
    workflow = Api.of(root).post("workflows/", driver.document(driver.invoice(), driver.mail())).json()["id"]
    case = factories.case(factories.step(factories.workflow(team=team), StepStatus.UNCERTAIN))
    artifact = artifacts.store(case.workflow_id, "a", "text/plain", [b"a"], actor=ACTOR)
    job = Api.of(root).post("bulk-jobs/", {"kind": "confirm", "reason": "x", "cases": [str(case.pk)]}).json()["id"]
    known = {
        "workflow_id": workflow,
        "step_id": str(Step.objects.filter(workflow=workflow)[0].pk),
        "sha256": resume_packets.issue(UUID(workflow), actor=ACTOR).sha256,
        "approval_id": str(pending(requested()[0]).pk),
        "case_id": str(case.pk),
        "artifact_id": str(artifact.pk),
        "job_id": job,
        "stream": workflow,
        "seq": 1,
        "number": 1,
        "name": "invoice",
    }
    return token_of(root), known


@pytest.mark.slow
@pytest.mark.timeout(3600 if "CHECKPOINT_API_EXAMPLES" in os.environ else 300)
def test_no_request_is_answered_by_anything_that_the_document_does_not_name(
    web_server: str, subtests: pytest.Subtests
) -> None:
    token, known = world()
    schema = schemathesis.openapi.from_dict(written_down())
    for found in schema.get_all_operations():
        operation: Any = found.ok()  # type: ignore[union-attr]  # the document is valid, as another test says
        places = {name: known[name] for name in names(operation)}
        kinds = [(Mode.POSITIVE, places), (Mode.NEGATIVE, places), (Mode.POSITIVE, {})]
        for mode, known_places in kinds if places else kinds[:2]:
            with subtests.test(operation.label, mode=mode.value, known=bool(known_places)):
                ask(operation, web_server, token, mode, known_places)


def names(operation: Any) -> list[str]:
    """The parameters of an operation's address."""
    return [parameter.name for parameter in operation.path_parameters]


def ask(operation: Any, web_server: str, token: str, mode: Any, places: dict[str, Any]) -> None:
    """Makes the requests of one kind."""
    there_is = {"path_parameters": places} if places else {}

    @given(operation.as_strategy(mode, **there_is))
    @settings(SETTINGS)
    def make(case: Any) -> None:
        headers = {"Authorization": f"Bearer {token}", "Idempotency-Key": f"fuzz-{next(_number)}"}
        case.call_and_validate(base_url=web_server, headers=headers, checks=CHECKS, timeout=20)

    make()
