"""What the API shows of questions to people and their answers."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from approvals.bulk import trail
from approvals.models import BulkItem, BulkJob, Decision
from checkpoint.gates.rulings import ApprovalRule
from checkpoint.models import Approval, Case, PolicyVersion
from checkpoint.states import Decision as DecisionKind


class DecisionShown(serializers.ModelSerializer[Decision]):
    """What a person answered."""

    kind = serializers.ChoiceField([kind.value for kind in DecisionKind])

    class Meta:
        model = Decision
        fields = ("kind", "reason", "operation_id", "person_name", "channel", "decided_at")


class CaseInList(serializers.ModelSerializer[Case]):
    """A question about what happened."""

    url = serializers.HyperlinkedIdentityField(view_name="approvals-api:case", lookup_url_kwarg="case_id")
    step = serializers.CharField(source="step.name")
    tool = serializers.CharField(source="step.tool_version.name")

    class Meta:
        model = Case
        fields = ("id", "url", "workflow_id", "step_id", "step", "tool", "reason", "sentence", "status", "opened_at")


class CaseShown(CaseInList):
    """A question with what a decision has to name: `step_version` and `arguments_hash` as they are now."""

    findings = serializers.JSONField(help_text="What is known, what is not, and what was tried.")
    step_version = serializers.IntegerField(source="step.version")
    arguments_hash = serializers.CharField(source="step.arguments_hash")
    decisions = serializers.SerializerMethodField(help_text="The answers that are allowed now.")
    decision = serializers.SerializerMethodField(help_text="The answer, once there is one.")

    class Meta(CaseInList.Meta):
        fields = (  # type: ignore[assignment]  # a longer tuple
            *CaseInList.Meta.fields, "findings", "step_version", "arguments_hash", "decisions", "closed_at", "closing",
            "decision",
        )  # fmt: skip

    def get_decisions(self, case: Case) -> list[str]:
        """By the context, which the view asked the policy for."""
        allowed: list[str] = self.context["allowed"]
        return allowed

    def get_decision(self, case: Case) -> dict[str, Any] | None:
        """None while nobody answered."""
        decision = getattr(case, "decision", None)
        return DecisionShown(decision).data if decision is not None else None


class RequestInList(serializers.ModelSerializer[Approval]):
    """A request for approval."""

    url = serializers.HyperlinkedIdentityField(view_name="approvals-api:approval", lookup_url_kwarg="approval_id")
    step = serializers.CharField(source="step.name")
    tool = serializers.CharField(source="step.tool_version.name")

    class Meta:
        model = Approval
        fields = (
            "id", "url", "workflow_id", "step_id", "step", "tool", "status", "requested_at", "expires_at", "closed_at",
        )  # fmt: skip


class ShareShown(serializers.Serializer[Any]):
    """One step that a request would let run."""

    step = serializers.CharField(source="step.name")
    tool = serializers.CharField(source="step.tool_version.name")
    arguments_text = serializers.CharField(
        source="text", help_text="The exact text that is hashed and sent: canonical JSON (RFC 8785)."
    )
    is_template = serializers.BooleanField(help_text="The arguments wait for earlier results.")
    arguments_hash = serializers.CharField(source="approval.arguments_hash")


class RequestShown(RequestInList):
    """A request with all that it allows; an answer names `arguments_hash`."""

    arguments_hash = serializers.CharField(source="shown_hash", help_text="Names everything that is allowed by it.")
    policy_version = serializers.IntegerField(source="policy_version.number")
    needed = serializers.SerializerMethodField(help_text="How many people have to allow it.")
    groups = serializers.SerializerMethodField(help_text="Of which groups; empty for any.")
    shares = serializers.SerializerMethodField()
    answers = DecisionShown(source="decisions", many=True)

    class Meta(RequestInList.Meta):
        fields = (  # type: ignore[assignment]  # a longer tuple
            *RequestInList.Meta.fields, "arguments_hash", "policy_version", "needed", "groups", "shares", "answers",
            "closing",
        )  # fmt: skip

    def get_needed(self, request: Approval) -> int:
        """By the rule that asked."""
        return ApprovalRule.from_json(request.rule).needed

    def get_groups(self, request: Approval) -> list[str]:
        """By the rule that asked."""
        return list(ApprovalRule.from_json(request.rule).groups)

    def get_shares(self, request: Approval) -> list[dict[str, Any]]:
        """By the context, which the view read."""
        shown: list[dict[str, Any]] = list(ShareShown(self.context["shares"], many=True).data)
        return shown


class Answered(serializers.Serializer[Any]):
    """What became of an answer."""

    recorded = serializers.ChoiceField(["decision", "signature"], help_text="A signature waits for further people.")
    kind = serializers.CharField()
    person_name = serializers.CharField()
    at = serializers.DateTimeField()
    workflow_status = serializers.CharField()


class PolicyInList(serializers.ModelSerializer[PolicyVersion]):
    """A version of the policy without its text."""

    url = serializers.HyperlinkedIdentityField(
        view_name="approvals-api:policy", lookup_field="number", lookup_url_kwarg="number"
    )

    class Meta:
        model = PolicyVersion
        fields = ("number", "url", "sha256", "reason", "author", "created_at")


class PolicyShown(PolicyInList):
    """A version with its text."""

    text = serializers.SerializerMethodField(help_text="YAML, as its author wrote it.")

    class Meta(PolicyInList.Meta):
        fields = (*PolicyInList.Meta.fields, "text")  # type: ignore[assignment]  # a longer tuple

    def get_text(self, version: PolicyVersion) -> str:
        """By the context."""
        text: str = self.context["text"]
        return text


class PolicyChange(serializers.Serializer[Any]):
    """Open steps of one tool that would be judged otherwise."""

    tool = serializers.CharField()
    differences = serializers.ListField(child=serializers.CharField())
    steps = serializers.IntegerField()
    workflows = serializers.ListField(child=serializers.UUIDField(), help_text="The newest of them.")


class PolicyTried(serializers.Serializer[Any]):
    """What a policy would change for the open work."""

    compared_with = serializers.IntegerField(help_text="The version in force; an activation names it as `seen`.")
    warnings = serializers.ListField(child=serializers.CharField())
    looked_at = serializers.IntegerField(help_text="Open steps that were compared.")
    complete = serializers.BooleanField(help_text="Whether these are all.")
    changes = PolicyChange(many=True)


class BulkJobShown(serializers.ModelSerializer[BulkJob]):
    """One answer to many questions; `totals` has how many items came to which result."""

    url = serializers.HyperlinkedIdentityField(view_name="approvals-api:bulk-job", lookup_url_kwarg="job_id")
    items_url = serializers.HyperlinkedIdentityField(view_name="approvals-api:bulk-items", lookup_url_kwarg="job_id")
    totals = serializers.SerializerMethodField()

    class Meta:
        model = BulkJob
        fields = (
            "id", "url", "items_url", "kind", "reason", "status", "person_name", "matched", "count", "cap", "totals",
            "frozen_at", "started_at", "ended_at", "aborted_by",
        )  # fmt: skip

    def get_totals(self, job: BulkJob) -> dict[str, int]:
        """As the trail counts them."""
        return trail.totals(job).as_json()


class BulkItemShown(serializers.ModelSerializer[BulkItem]):
    """One item, and what became of it."""

    class Meta:
        model = BulkItem
        fields = ("number", "case_id", "approval_id", "step_version", "arguments_hash", "result", "message", "at")
