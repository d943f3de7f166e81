"""What a draft would do if it were started now: how many of which tool, what will be refused and why.

A forecast and no promise: each item is decided when its turn comes. Tests hold the forecast to what then happens.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from django.contrib.auth.models import AnonymousUser

from approvals import permits, signatures, step_up
from approvals.bulk import consequences, queries, rules
from approvals.bulk.consequences import Effect
from approvals.bulk.queries import Listed
from approvals.bulk.states import BulkResult
from approvals.models import BulkJob, Signature
from approvals.permissions import DECIDE_APPROVAL, DECIDE_CASE
from approvals.step_up import UNKNOWN, Authentication
from checkpoint import clock
from checkpoint.errors import CheckpointError
from checkpoint.gates import step_rulings
from checkpoint.gates.rulings import ApprovalRule, StepDescription
from checkpoint.models import Approval, Case
from checkpoint.permissions import Person
from checkpoint.states import ApprovalStatus, CaseReason, CaseStatus, Decision


@dataclass(frozen=True)
class Expected:
    """One item with the result that it would have now, and why where that is not `done`.

    Attributes:
        needs_others: it would be recorded, and wait for further people before it does anything.
        needs_password: it would be recorded if its person had authenticated again.
    """

    listed: Listed
    result: BulkResult
    message: str = ""
    needs_others: bool = False
    needs_password: bool = False


@dataclass(frozen=True)
class ToolLine:
    """The items of one tool and reversibility."""

    tool: str
    reversibility: str
    count: int
    answered: int


@dataclass(frozen=True)
class Preview:
    """What a person has to know before starting."""

    kind: Decision
    expected: Sequence[Expected]

    @property
    def answered(self) -> list[Expected]:
        """Those whose answer would be recorded."""
        return [expected for expected in self.expected if expected.result is BulkResult.DONE]

    @property
    def unanswered(self) -> list[tuple[str, list[Expected]]]:
        """The others, by reason, the most frequent first."""
        reasons = Counter(expected.message for expected in self.expected if expected.message)
        return [
            (reason, [one for one in self.expected if one.message == reason]) for reason, _ in reasons.most_common()
        ]

    @property
    def needs_password(self) -> int:
        """How many will be refused unless the person gives their password again before the start."""
        return sum(expected.needs_password for expected in self.expected)

    @property
    def tools(self) -> list[ToolLine]:
        """Counts by tool and reversibility; what cannot be undone first."""
        every, answered = (Counter(_tool(one) for one in group) for group in (self.expected, self.answered))
        lines = [ToolLine(*key, count, answered[key]) for key, count in every.items()]
        return sorted(lines, key=lambda line: (line.reversibility != "irreversible", -line.count, line.tool))

    @property
    def sentences(self) -> list[str]:
        """What the answer does, in words."""
        return consequences.sentences(self.kind, self._effects)

    @property
    def warning(self) -> str:
        """What goes wrong if the answer is wrong, where that cannot be mended."""
        return consequences.warning(self.kind, self._effects)

    @property
    def _effects(self) -> list[Effect]:
        return [_effect(one) for one in self.answered]


def _tool(one: Expected) -> tuple[str, str]:
    return str(one.listed.step.tool_version), one.listed.reversibility


def _effect(one: Expected) -> Effect:
    listed, about = one.listed, one.listed.about
    return Effect(
        workflow_id=about.workflow_id,
        reason=CaseReason(about.reason) if isinstance(about, Case) else None,
        contract=listed.contract,
        attempted=listed.step.attempt_count > 0,
        needs_others=one.needs_others,
    )


def _needed(approval: Approval) -> int:
    given = sum(decision.kind == Decision.APPROVE for decision in approval.decisions.all())
    return ApprovalRule.from_json(approval.rule).needed - given


def cut_off(job: BulkJob) -> str:
    """What the cap left out and why it is there (S34); empty where everything fitted."""
    rest = job.matched - job.count
    if not rest:
        return ""
    return (
        f"{job.matched} match. One job takes at most {job.cap}, so that a mistake stays small and all of it can be"
        f" looked at: these are the first {job.count} of the queue, and {rest} stay there for another job."
    )


def preview(job: BulkJob, authentication: Authentication = UNKNOWN) -> Preview:
    """What would become of the job's items if its person, who authenticated then, started it now."""
    judge = _Judge(job, authentication)
    return Preview(judge.kind, [judge.expect(listed) for listed in queries.listed(queries.items(job))])


class _Judge:
    """Foresees single results; asks about the person once for the whole job."""

    def __init__(self, job: BulkJob, authentication: Authentication) -> None:
        self.kind = Decision(job.kind)
        self.person: Person = job.person or AnonymousUser()
        self.groups = set(self.person.groups.values_list("name", flat=True))
        self.now = clock.now()
        self.is_recent = authentication.is_recent(self.now)
        self.policy_version_id = signatures.in_force()
        signed = Signature.objects.filter(case__bulk_items__job=job)
        self.signed = set(signed.values_list("case", flat=True))
        self.visible = queries.visible_workflow_ids(self.person, job)

    def expect(self, listed: Listed) -> Expected:
        """The result of one item, in the order in which the answer itself is checked."""
        about = listed.about
        if refusal := rules.refusal(self.kind, listed.facts):
            return Expected(listed, BulkResult.REFUSED, refusal)
        if about.workflow_id not in self.visible:
            return Expected(listed, BulkResult.REFUSED, "You may not see it any more.")
        return self._case(listed, about) if isinstance(about, Case) else self._approval(listed, about)

    def _case(self, listed: Listed, case: Case) -> Expected:
        if not self.person.has_perm(DECIDE_CASE):
            return Expected(listed, BulkResult.REFUSED, "You may not decide cases.")
        if case.status != CaseStatus.OPEN:
            return Expected(listed, BulkResult.MOVED, "Nobody needs to answer it any more.")
        if self.kind not in case.rule.decisions:
            answers = ", ".join(case.rule.decisions)
            return Expected(listed, BulkResult.REFUSED, f"It can be answered with {answers}; not with {self.kind}.")
        seen = (listed.item.step_version, listed.item.arguments_hash)
        if seen != (listed.step.version, listed.step.arguments_hash):
            return Expected(listed, BulkResult.MOVED, "The step moved on since it was selected.")
        try:
            rules_of_case = signatures.rules_of(case, self.policy_version_id)
            signed = signatures.on(case) if case.pk in self.signed else []
            waits = signatures.missing_by(rules_of_case, signed, self.kind, self.person)
            needs_password = not self.is_recent and signatures.wants_step_up(case, self.policy_version_id)
        except CheckpointError as refusal:
            return Expected(listed, BulkResult.REFUSED, str(refusal))
        if waits and signatures.of_person(signed, self.person) is not None:
            return Expected(listed, BulkResult.MOVED, "You gave this answer already; it waits for another person.")
        if needs_password:
            return _without_password(listed)
        return Expected(listed, BulkResult.DONE, needs_others=waits > 0)

    def _approval(self, listed: Listed, approval: Approval) -> Expected:
        given = {decision.person_id: decision.kind for decision in approval.decisions.all()}
        earlier = given.get(self.person.pk)
        if approval.status != ApprovalStatus.PENDING or self.now >= approval.expires_at or earlier == self.kind:
            return Expected(listed, BulkResult.MOVED, "Nobody needs to answer it any more.")
        voter = permits.Voter(
            has_right=self.person.has_perm(DECIDE_APPROVAL),
            groups=self.groups,
            requester=approval.workflow.submitted_by_id == self.person.pk,
            answered=earlier is not None,
        )
        if refusal := permits.refusal(ApprovalRule.from_json(approval.rule), voter):
            return Expected(listed, BulkResult.REFUSED, refusal)
        try:
            needs_password = not self.is_recent and step_up.wanted(self.policy_version_id, map(_described, [listed]))
        except CheckpointError as unreadable:
            return Expected(listed, BulkResult.REFUSED, str(unreadable))
        if needs_password:
            return _without_password(listed)
        return Expected(listed, BulkResult.DONE, needs_others=_needed(approval) > 1)


def _described(listed: Listed) -> StepDescription:
    return step_rulings.describe_stored(listed.step, listed.about.workflow, listed.step.arguments)


def _without_password(listed: Listed) -> Expected:
    return Expected(listed, BulkResult.REFUSED, step_up.refusal(), needs_password=True)
