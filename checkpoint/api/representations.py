"""What the API shows of each noun, in types that OpenAPI can tell."""

from __future__ import annotations

import json
from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from checkpoint.explaining import step_counts
from checkpoint.explaining.step_counts import BATCHES_TOLD, Counts, PlanCounts
from checkpoint.models import Artifact, Attempt, Evidence, ResumePacket, Step, ToolVersion, Workflow

_PARTIAL = "The plan went on without some of its steps; completed, it is a partial result."


@extend_schema_field({})
class JsonText(serializers.Field[Any, Any, Any, Any]):
    """Canonical JSON that is stored as text, shown as JSON."""

    def to_representation(self, value: str) -> Any:
        """The value; a null stays one."""
        return json.loads(value) if value else None


class WorkflowInList(serializers.ModelSerializer[Workflow]):
    """A workflow without its payloads; of the goal only the beginning."""

    url = serializers.HyperlinkedIdentityField(view_name="api:workflow", lookup_url_kwarg="workflow_id")
    team = serializers.SlugField(source="team.slug")
    goal = serializers.CharField(source="goal_preview")
    submitted_by = serializers.CharField(
        source="submitted_by.username", default=None, allow_null=True, help_text="Null for the machine's operator."
    )
    asked = serializers.BooleanField(help_text="Whether people are asked something about it.")
    partial = serializers.BooleanField(help_text=_PARTIAL)  # type: ignore[assignment]  # DRF takes fields out of the class

    class Meta:
        model = Workflow
        fields = (
            "id", "url", "team", "kind", "reference", "goal", "status", "version", "partial", "sealed", "winding_down",
            "asked", "submitted_by", "created_at", "updated_at", "agent_due_at", "ended_at",
        )  # fmt: skip


class CountsShown(serializers.Serializer[Counts]):
    """How many steps are in which state, without zeros; a step that was waived counts as that."""

    position = serializers.IntegerField(allow_null=True, help_text="Null for the whole plan.")
    total = serializers.IntegerField()
    by_state = serializers.DictField(child=serializers.IntegerField())


class PlanCountsShown(serializers.Serializer[PlanCounts]):
    """The counts of a plan."""

    plan = CountsShown()
    batches = CountsShown(many=True, help_text=f"Positions that several steps share; the first {BATCHES_TOLD}.")
    left_off = serializers.IntegerField(help_text="Batches that are not listed.")


class WorkflowShown(serializers.ModelSerializer[Workflow]):
    """A workflow without its input."""

    url = serializers.HyperlinkedIdentityField(view_name="api:workflow", lookup_url_kwarg="workflow_id")
    steps_url = serializers.HyperlinkedIdentityField(view_name="api:steps", lookup_url_kwarg="workflow_id")
    resume_packet_url = serializers.HyperlinkedIdentityField(
        view_name="api:resume-packet", lookup_url_kwarg="workflow_id"
    )
    team = serializers.SlugField(source="team.slug")
    policy_version = serializers.IntegerField(source="policy_version.number")
    submitted_by = serializers.CharField(
        source="submitted_by.username", default=None, allow_null=True, help_text="Null for the machine's operator."
    )
    partial = serializers.BooleanField(help_text=_PARTIAL)  # type: ignore[assignment]  # DRF takes fields out of the class
    counts = serializers.SerializerMethodField()

    @extend_schema_field(PlanCountsShown)
    def get_counts(self, workflow: Workflow) -> Any:
        """However many steps there are, this stays small."""
        return PlanCountsShown(step_counts.of_workflow(workflow.pk)).data

    class Meta:
        model = Workflow
        fields = (
            "id", "url", "steps_url", "resume_packet_url", "team", "kind", "goal", "constraints", "input_hash",
            "prompt_version", "policy_version", "status", "partial", "counts", "version", "sealed",
            "winding_down", "submitted_by", "created_at", "updated_at", "agent_due_at", "ended_at",
        )  # fmt: skip


class StepInList(serializers.ModelSerializer[Step]):
    """A step without its payloads."""

    url = serializers.HyperlinkedIdentityField(view_name="api:step", lookup_url_kwarg="step_id")
    tool = serializers.CharField(source="tool_version.name")
    tool_version = serializers.CharField(source="tool_version.version")

    class Meta:
        model = Step
        fields = (
            "id", "url", "name", "position", "tool", "tool_version", "variant", "status", "version", "standing",
            "by_agent", "arguments_hash", "idempotency_key", "operation_id", "fence", "attempt_count", "committed_at",
            "verified_at",
        )  # fmt: skip


class AttemptShown(serializers.ModelSerializer[Attempt]):
    """One try at executing a step."""

    class Meta:
        model = Attempt
        fields = ("number", "fence", "started_at", "deadline_at", "ended_at", "ending", "applied", "detail")


class StepShown(StepInList):
    """A step with its arguments and attempts. `arguments` is null while they wait for earlier results."""

    arguments = JsonText()
    planned_arguments = JsonText(source="template")
    attempts = AttemptShown(many=True)
    result = JsonText(source="receipt.facts", default=None, help_text="The facts of its receipt.")
    evidence_url = serializers.HyperlinkedIdentityField(view_name="api:evidence", lookup_url_kwarg="step_id")

    class Meta(StepInList.Meta):
        fields = (*StepInList.Meta.fields, "arguments", "planned_arguments", "attempts", "result", "evidence_url")  # type: ignore[assignment]  # a longer tuple


class EvidenceShown(serializers.ModelSerializer[Evidence]):
    """One fact with its source, time and standing. What tools and providers said in it is not to be trusted."""

    facts = JsonText()

    class Meta:
        model = Evidence
        fields = (
            "id", "kind", "finding", "source", "standing", "attempt_number", "fence", "operation_id", "facts",
            "sha256", "observed_at",
        )  # fmt: skip


class ArtifactShown(serializers.ModelSerializer[Artifact]):
    """An artifact's row. Name and media type are what somebody claimed."""

    url = serializers.HyperlinkedIdentityField(view_name="api:artifact", lookup_url_kwarg="artifact_id")
    content_url = serializers.HyperlinkedIdentityField(view_name="api:artifact-content", lookup_url_kwarg="artifact_id")

    class Meta:
        model = Artifact
        fields = ("id", "url", "workflow_id", "name", "media_type", "sha256", "size", "content_url", "created_at")


class AuditEntryShown(serializers.Serializer[Any]):
    """One link of a chain."""

    stream = serializers.UUIDField(source="row.stream_id")
    stream_name = serializers.CharField(source="row.stream.name")
    seq = serializers.IntegerField(source="row.seq")
    at = serializers.DateTimeField(source="row.at")
    actor = serializers.CharField(source="row.actor")
    channel = serializers.CharField(source="row.channel")
    verb = serializers.CharField(source="row.verb")
    text = serializers.CharField(source="row.text", help_text="Exactly what was hashed.")
    hash = serializers.CharField(source="row.hash")
    intact = serializers.BooleanField(help_text="Whether the text is still the one that was hashed.")


class EventShown(serializers.Serializer[Any]):
    """What was done to what in a workflow; why, and with which facts, is read at the workflow."""

    id = serializers.CharField(source="place", help_text="Where a reader goes on: `after`, or Last-Event-ID.")
    workflow_id = serializers.UUIDField()
    seq = serializers.IntegerField(help_text="The audit entry's number in the workflow.")
    at = serializers.DateTimeField()
    actor = serializers.CharField()
    verb = serializers.CharField()
    subject = serializers.CharField()
    before = serializers.CharField(allow_blank=True)
    after = serializers.CharField(allow_blank=True)


class PacketShown(serializers.ModelSerializer[ResumePacket]):
    """A resume packet with its hash, which is taken over the canonical JSON (RFC 8785) of `packet`."""

    packet = serializers.SerializerMethodField(help_text="docs/resume-packets.md tells its members.")
    old = serializers.SerializerMethodField(help_text="Ids of the evidence in it whose declared time is over by now.")

    class Meta:
        model = ResumePacket
        fields = (
            "id", "workflow_id", "workflow_version", "budget", "counted_in", "sha256", "issued_to", "issued_at", "old",
            "packet",
        )  # fmt: skip

    def get_packet(self, packet: ResumePacket) -> dict[str, Any]:
        """By the context."""
        found: dict[str, Any] = self.context["packet"]
        return found

    def get_old(self, packet: ResumePacket) -> list[str]:
        """By the context, which the view asked the clock for."""
        old: list[str] = self.context["old"]
        return old


class ToolShown(serializers.ModelSerializer[ToolVersion]):
    """The version of a tool that is in force, with the JSON Schema of its arguments and what each variant promises."""

    team = serializers.CharField(
        source="team.slug",
        default=None,
        allow_null=True,
        help_text="Whose agents alone carry it out; null for everybody's tools.",
    )

    class Meta:
        model = ToolVersion
        fields = ("name", "team", "version", "summary", "schema", "variants", "sha256", "published_at")


class Submitted(serializers.Serializer[Any]):
    """What was stored."""

    id = serializers.UUIDField()
    url = serializers.CharField()
    status = serializers.CharField()
    steps = serializers.IntegerField()


class AppendedShown(serializers.Serializer[Any]):
    """The workflow as it is now, and the steps that were appended; none where it was only sealed."""

    workflow = WorkflowShown()
    steps = StepInList(many=True)


class BegunShown(serializers.Serializer[Any]):
    """Permission to make the call once, under a fence. Times are the database's."""

    step = serializers.UUIDField()
    attempt = serializers.IntegerField()
    fence = serializers.IntegerField(help_text="Name it when you hold and when you record.")
    idempotency_key = serializers.CharField(help_text="Give it to the provider; the same in every attempt.")
    arguments = serializers.JSONField(help_text="Exactly what was allowed.")
    lease_until = serializers.DateTimeField(help_text="Hold the step before that, or you count as gone.")
    deadline_at = serializers.DateTimeField(help_text="After that, send nothing more.")


class WaitingShown(serializers.Serializer[Any]):
    """Not begun: do nothing, and ask again later."""

    waits_for = serializers.ChoiceField(
        choices=["approval", "question", "earlier_steps", "intent", "inspection", "time", "limit", "nothing"]
    )
    detail = serializers.CharField()
    look_at = serializers.CharField(help_text="Address of what people are asked; empty where they are not.")
    retry_at = serializers.DateTimeField(allow_null=True)


class LeaseShown(serializers.Serializer[Any]):
    """Until when the step is held."""

    lease_until = serializers.DateTimeField()
    deadline_at = serializers.DateTimeField()


class ProblemShown(serializers.Serializer[Any]):
    """Problem details (RFC 9457)."""

    type = serializers.CharField(help_text="urn:checkpoint:problem: and the code.")
    title = serializers.CharField()
    status = serializers.IntegerField()
    detail = serializers.CharField(help_text="What happened and what to do next.")
    instance = serializers.CharField(help_text="urn:checkpoint:request: and the request id.")
    code = serializers.CharField(help_text="Stays the same from release to release.")
    faults = serializers.ListField(
        child=serializers.DictField(child=serializers.CharField()),
        required=False,
        help_text="Of a body: each fault's place as a JSON pointer (RFC 6901), and what is wrong there.",
    )
