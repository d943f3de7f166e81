"""Valid rows for tests, inserted as the application's role: steps are moved along the arrows, as the laws demand."""

from __future__ import annotations

import itertools
import uuid
from collections.abc import Iterable
from datetime import timedelta
from functools import cache
from typing import Any

from django.contrib.auth.hashers import make_password
from django.contrib.auth.models import Group, Permission, User

from checkpoint import audit, clock
from checkpoint.canonical import canonical, idempotency_key, sha256_hex
from checkpoint.contracts import Contract, RecoveryClass, Reversibility
from checkpoint.models import (
    Attempt,
    AuditStream,
    Case,
    Ending,
    Evidence,
    EvidenceKind,
    PolicyVersion,
    Step,
    Team,
    ToolVersion,
    WorkerProcess,
    Workflow,
)
from checkpoint.people import Actor
from checkpoint.states import CaseReason, Standing, StepStatus, WorkflowStatus
from checkpoint.transactions import one_transaction

PASSWORD = "correct horse battery staple"
_number = itertools.count(1)

CHARGE = Contract(
    recovery=RecoveryClass.OPAQUE,
    reversibility=Reversibility.IRREVERSIBLE,
    where_to_look="Search the card processor's dashboard for the reference.",
    link="https://cards.example/search?q={key}",
)
TICKET = Contract(
    recovery=RecoveryClass.QUERYABLE, reversibility=Reversibility.COMPENSABLE, can_inspect=True, can_verify=True
)
NOTE = Contract(recovery=RecoveryClass.IDEMPOTENT, reversibility=Reversibility.NONE_NEEDED)

# The moves by which a new step gets to each status.
_WAYS: dict[StepStatus, tuple[StepStatus, ...]] = {
    StepStatus.PLANNED: (),
    StepStatus.PREPARED: (),
    StepStatus.STARTED: (StepStatus.STARTED,),
    StepStatus.COMMITTED: (StepStatus.STARTED, StepStatus.COMMITTED),
    StepStatus.VERIFIED: (StepStatus.STARTED, StepStatus.COMMITTED, StepStatus.VERIFIED),
    StepStatus.FAILED: (StepStatus.STARTED, StepStatus.FAILED),
    StepStatus.UNCERTAIN: (StepStatus.STARTED, StepStatus.UNCERTAIN),
    StepStatus.ABANDONED: (StepStatus.ABANDONED,),
    StepStatus.SUPERSEDED: (StepStatus.SUPERSEDED,),
}


def team(name: str = "Billing") -> Team:
    """The team of that name."""
    return Team.objects.get_or_create(slug=name.lower().replace(" ", "-"), defaults={"name": name})[0]


def person(
    name: str, *, groups: Iterable[str] = (), teams: Iterable[Team] = (), permissions: Iterable[str] = ()
) -> User:
    """A new account with PASSWORD. Permissions are named as in `has_perm`."""
    user = User.objects.create(username=name, password=_hashed_password())
    user.groups.set(Group.objects.filter(name__in=groups))
    for permission in permissions:
        app_label, codename = permission.split(".")
        user.user_permissions.add(Permission.objects.get(content_type__app_label=app_label, codename=codename))
    for joined in teams:
        joined.members.add(user)
    return user


@cache
def _hashed_password() -> str:
    """Hashing is slow on purpose; once is enough."""
    return make_password(PASSWORD)


def policy() -> PolicyVersion:
    """The newest policy version."""
    newest = PolicyVersion.objects.order_by("-number").first()
    return newest or PolicyVersion.objects.create(number=1, sha256="0" * 64, rules={}, reason="first", author="tests")


def tool(name: str = "card.charge", contract: Contract = CHARGE) -> ToolVersion:
    """A tool with one variant, named "only"."""
    variants = [{"name": "only", "when": {}, "contract": contract.to_json()}]
    made, _ = ToolVersion.objects.get_or_create(
        name=name,
        version="1",
        sha256=sha256_hex(canonical(variants)),
        defaults={"summary": f"The tool {name}.", "schema": {}, "variants": variants},
    )
    return made


def worker() -> WorkerProcess:
    """A new worker process."""
    number = next(_number)
    return WorkerProcess.objects.create(
        id=uuid.uuid4(), lock_key=number, host=f"worker-{number}", boot_id="boot", pid=number, tools=[]
    )


def workflow(**fields: Any) -> Workflow:
    """A planned workflow without steps, with its audit stream."""
    made = Workflow.objects.create(
        **{
            "team": fields.pop("team", None) or team(),
            "kind": "refund",
            "goal": "Refund order 1007 to the customer.",
            "constraints": ["Never refund more than the order's total."],
            "input": "{}",
            "input_hash": sha256_hex("{}"),
            "prompt_version": "refund/3",
            "policy_version": policy(),
            **fields,
        }
    )
    AuditStream.objects.create(id=made.pk, name=f"workflow/{made.pk}", last_hash=audit.FIRST_HASH)
    return made


def step(of: Workflow, status: StepStatus = StepStatus.PREPARED, **fields: Any) -> Step:
    """A step in the status, with the attempts and the receipt that such a step has."""
    name = fields.pop("name", None) or f"step_{next(_number)}"
    used = fields.pop("tool_version", None) or tool()
    arguments = canonical(fields.pop("arguments", {"amount_cents": 12900, "card": "tok_91"}))
    planned = status is StepStatus.PLANNED
    made = Step.objects.create(
        **{
            "workflow": of,
            "position": of.steps.count() + 1,
            "name": name,
            "tool_version": used,
            "template": arguments,
            "status": StepStatus.PLANNED if planned else StepStatus.PREPARED,
            "attempts_allowed": 3,
            **({} if planned else _written_ahead(of, name, used, arguments)),
            **fields,
        }
    )
    for target in _WAYS[status]:
        move(made, target)
    return Step.objects.get(pk=made.pk)


def _written_ahead(of: Workflow, name: str, used: ToolVersion, arguments: str) -> dict[str, str]:
    key = idempotency_key(workflow_id=str(of.pk), step_name=name, tool=used.name, arguments=arguments)
    return {
        "arguments": arguments,
        "arguments_hash": sha256_hex(arguments),
        "variant": "only",
        "idempotency_key": key,
    }


def move(moved: Step, target: StepStatus, **fields: Any) -> None:
    """Moves the step over one arrow, with the attempt or receipt that goes with it."""
    if target is StepStatus.STARTED:
        fields |= {"fence": moved.fence + 1, "attempt_count": moved.attempt_count + 1}
        attempt(moved, number=moved.attempt_count + 1, fence=moved.fence + 1)
    if target in (StepStatus.COMMITTED, StepStatus.FAILED, StepStatus.UNCERTAIN):
        _end_attempt(moved, target)
    if target is StepStatus.COMMITTED:
        receipt = evidence(moved, operation_id="op_5512")
        fields |= {"receipt": receipt, "operation_id": "op_5512", "standing": Standing.COMMITTED}
    if target is StepStatus.VERIFIED:
        fields = {"standing": Standing.VERIFIED, "verified_at": clock.now()} | fields
    Step.objects.filter(pk=moved.pk).update(status=target, version=moved.version + 1, **fields)
    moved.refresh_from_db()


def attempt(of: Step, *, number: int, fence: int, **fields: Any) -> Attempt:
    """An attempt that has not ended."""
    started = clock.now()
    return Attempt.objects.create(
        **{
            "step": of,
            "number": number,
            "fence": fence,
            "worker": worker(),
            "started_at": started,
            "deadline_at": started + timedelta(seconds=30),
            **fields,
        }
    )


def _end_attempt(of: Step, target: StepStatus) -> None:
    ending, applied = {
        StepStatus.COMMITTED: (Ending.RECEIPT, True),
        StepStatus.FAILED: (Ending.REFUSED, False),
        StepStatus.UNCERTAIN: (Ending.LOST, None),
    }[target]
    of.attempts.filter(ended_at=None).update(ending=ending, applied=applied, ended_at=clock.now())


def evidence(of: Step, **fields: Any) -> Evidence:
    """A response of the tool, or what the fields say."""
    facts = canonical(fields.pop("facts", {"status": "captured", "amount_cents": 12900}))
    return Evidence.objects.create(
        **{
            "step": of,
            "kind": EvidenceKind.RESPONSE,
            "finding": "receipt",
            "source": "card.charge",
            "standing": Standing.COMMITTED,
            "attempt_number": of.attempt_count,
            "fence": of.fence,
            "facts": facts,
            "sha256": sha256_hex(facts),
            "observed_at": clock.now(),
            **fields,
        }
    )


def case(of: Step | None = None, reason: CaseReason = CaseReason.OUTCOME_UNKNOWN, **fields: Any) -> Case:
    """An open case; without a step given, about a new uncertain step of a new workflow, which then needs review."""
    about = of or step(workflow(), StepStatus.UNCERTAIN, name="charge_card")
    Workflow.objects.filter(pk=about.workflow_id).update(status=WorkflowStatus.NEEDS_REVIEW)
    return Case.objects.create(
        **{
            "workflow": about.workflow,
            "step": about,
            "reason": reason,
            "sentence": "The worker died after it may have sent the call, and this tool cannot be asked.",
            "findings": {
                "known": ["The call was written ahead and started on worker-1."],
                "unknown": ["Whether the request reached the provider."],
                "tried": ["The flight recorder was read: the call was being sent."],
            },
            "step_version": about.version,
            "arguments_hash": about.arguments_hash,
            "opened_at": clock.now(),
            **fields,
        }
    )


@one_transaction
def audited(of: Workflow, verb: str, subject: str, **fields: Any) -> None:
    """An entry in the workflow's audit stream."""
    actor = fields.pop("actor", None) or Actor("ada", "console")
    audit.append([audit.Entry(stream=of.pk, actor=actor, verb=verb, subject=subject, **fields)], at=clock.now())
