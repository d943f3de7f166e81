"""Four eyes on a case: how many people an answer needs, who they may be, and who has given it already.

The policy in force at the time of the answer says so, not the one under which the workflow was planned: it is about
people, and what they may do is a matter of today. A signature counts while the step is what its person saw, and while
that person could still give it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.contrib.auth.models import User

from approvals import step_up
from approvals.casework.case_work import said
from approvals.models import Signature
from approvals.permissions import DECIDE_CASE
from approvals.queries import cases_visible_to
from approvals.step_up import UNKNOWN, Authentication
from checkpoint.errors import AlreadySigned, DecisionNotAllowed, Forbidden, RecordDamaged
from checkpoint.gates import step_rulings
from checkpoint.gates.rulings import DecisionRule, StepDescription
from checkpoint.models import Case, PolicyVersion
from checkpoint.people import Actor
from checkpoint.permissions import Person
from checkpoint.states import CASE_RULES, CaseReason, Decision
from checkpoint.transitions import Changes
from checkpoint.turns import pinned

Rules = Mapping[Decision, DecisionRule]


@dataclass(frozen=True)
class GivenAnswer:
    """What a person answers to a case, and what that person saw.

    Attributes:
        person: whoever the session or token belongs to.
        data: what was put into a task's form, as JSON values.
    """

    case_id: UUID
    kind: Decision
    person: User
    channel: str
    reason: str
    operation_id: str
    step_version: int
    arguments_hash: str
    authentication: Authentication = UNKNOWN
    data: Any = None

    @property
    def actor(self) -> Actor:
        """As the audit names the person."""
        return Actor(name=self.person.get_username(), channel=self.channel)


def in_force() -> UUID:
    """The policy version that rules now."""
    return PolicyVersion.objects.values_list("pk", flat=True).latest("number")


def rules_of(case: Case, policy_version_id: UUID | None = None) -> Rules:
    """The answers that both the case's reason and the policy in force allow, with the people that each needs.

    Args:
        policy_version_id: the policy in force, where the caller has asked for it already.

    Raises:
        DecisionNotAllowed: the policy in force cannot be read. Then nobody decides, rather than anybody.
    """
    reason = CaseReason(case.reason)
    ruling_version = policy_version_id or in_force()
    if not pinned.has_rules(ruling_version):
        return dict.fromkeys(CASE_RULES[reason].decisions, DecisionRule())
    try:
        ruling = pinned.ruling(ruling_version, describe(case))
    except RecordDamaged as damaged:
        raise DecisionNotAllowed(f"{damaged}. Until an administrator puts another in force, none decides.") from damaged
    allowed = ruling.decisions.get(reason, {})
    return {kind: allowed[kind] for kind in CASE_RULES[reason].decisions if kind in allowed}


def describe(case: Case) -> StepDescription:
    """The step that a case is about, as a policy sees it."""
    return step_rulings.describe_stored(case.step, case.workflow, case.step.arguments)


def wants_step_up(case: Case, policy_version_id: UUID | None = None) -> bool:
    """Whether the policy in force wants whoever answers to have authenticated again. Raises as `rules_of`."""
    return step_up.wanted(policy_version_id or in_force(), map(describe, [case]))


def missing(case: Case, kind: Decision, person: Person) -> int:
    """How many people have to give the same answer besides this one and those who signed; 0 makes it the last.

    Only what a caller learns who holds the locks, and has checked what the person saw, is more than a forecast.

    Raises:
        DecisionNotAllowed: the policy in force does not allow this answer.
        Forbidden: the policy wants people of groups to which this person does not belong.
        AlreadySigned: the person has given another answer to this question.
    """
    return missing_by(rules_of(case), on(case), kind, person)


def missing_by(rules: Rules, signed: Sequence[Signature], kind: Decision, person: Person) -> int:
    """As `missing`, where rules and signatures are known."""
    rule = rule_for(rules, kind)
    if refused := refusal(rule, person):
        raise Forbidden(refused)
    own = of_person(signed, person)
    if own is not None and own.kind != kind:
        raise AlreadySigned(f"You answered “{own.kind}” at {said(own.signed_at)}; it takes another person to disagree.")
    others = [each for each in agreeing(signed, kind, rule) if each is not own]
    return max(0, rule.needed - 1 - len(others))


def of_person(signed: Sequence[Signature], person: Person) -> Signature | None:
    """The person's own among the signatures."""
    return next((each for each in signed if each.person_id == person.pk), None)


def rule_for(rules: Rules, kind: Decision) -> DecisionRule:
    """The people that an answer needs. Raises DecisionNotAllowed."""
    if kind not in rules:
        answers = ", ".join(rules) or "nothing"
        raise DecisionNotAllowed(f"The policy in force lets this be answered with {answers}; not with {kind}.")
    return rules[kind]


def refusal(rule: DecisionRule, person: Person) -> str:
    """Why the policy does not want this person's answer, as a sentence; empty where it does."""
    if rule.groups and not person.groups.filter(name__in=rule.groups).exists():
        return f"The policy wants somebody of {' or '.join(rule.groups)} for this, and you are in none of these groups."
    return ""


def on(case: Case) -> list[Signature]:
    """The signatures about the step as it is now, of people who could still give them, the oldest first."""
    signed = case.signatures.filter(step_version=case.step.version).select_related("person")
    return [each for each in signed if each.person is not None and _may_decide(each.person, case)]


def agreeing(signed: Sequence[Signature], kind: Decision, rule: DecisionRule) -> list[Signature]:
    """Those that count towards an answer."""
    return [each for each in signed if each.kind == kind and each.person and not refusal(rule, each.person)]


def _may_decide(person: User, case: Case) -> bool:
    """A right taken away counts at once, also for what was signed before (S25)."""
    return person.has_perm(DECIDE_CASE) and cases_visible_to(person).filter(pk=case.pk).exists()


def sign(changes: Changes, case: Case, given: GivenAnswer, known: Mapping[str, str]) -> Signature:
    """Records an answer that waits for other people. `known`: what else the audit keeps of it."""
    changes.note_workflow(
        case.workflow_id,
        "sign",
        before=case.reason,
        after=given.kind.value,
        reason=given.reason,
        details={"case": str(case.pk), "operation_id": given.operation_id, **known},
    )
    return Signature.objects.create(
        case=case,
        kind=given.kind.value,
        reason=given.reason,
        operation_id=given.operation_id,
        person=given.person,
        person_name=given.person.get_username(),
        channel=given.channel,
        step_version=given.step_version,
        signed_at=changes.now,
    )


def still_needed(signature: Signature) -> str:
    """What a recorded signature waits for, as a sentence."""
    case = Case.objects.select_related("step__tool_version", "workflow__team").get(pk=signature.case_id)
    kind = Decision(signature.kind)
    rule = rule_for(rules_of(case), kind)
    given = len(agreeing(on(case), kind, rule))
    return f"Recorded as {given} of {rule.needed}; it waits for another person who answers “{kind}”."
