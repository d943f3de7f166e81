"""Addresses under /api/v1/."""

from __future__ import annotations

from django.urls import path
from drf_spectacular.views import SpectacularJSONAPIView

from checkpoint.api import agent_steps, artifacts, audit, events, index, plans, resume_packets, steps, tools, workflows

app_name = "api"

urlpatterns = [
    path("", index.Index.as_view(), name="index"),
    path("openapi.json", SpectacularJSONAPIView.as_view(), name="openapi"),
    path("workflows/", workflows.Workflows.as_view(), name="workflows"),
    path("workflows/<uuid:workflow_id>/", workflows.OneWorkflow.as_view(), name="workflow"),
    path("workflows/<uuid:workflow_id>/explanation/", workflows.Explanation.as_view(), name="explanation"),
    path("workflows/<uuid:workflow_id>/abandonment/", workflows.Abandonment.as_view(), name="abandonment"),
    path("workflows/<uuid:workflow_id>/resumption/", workflows.Resumption.as_view(), name="resumption"),
    path("workflows/<uuid:workflow_id>/events/", events.WorkflowEvents.as_view(), name="workflow-events"),
    path("events/", events.TeamEvents.as_view(), name="events"),
    path("workflows/<uuid:workflow_id>/seal/", plans.Seal.as_view(), name="seal"),
    path("workflows/<uuid:workflow_id>/steps/", plans.Steps.as_view(), name="steps"),
    path(
        "workflows/<uuid:workflow_id>/resume-packet/",
        resume_packets.CurrentPacket.as_view(),
        name="resume-packet",
    ),
    path(
        "workflows/<uuid:workflow_id>/resume-packet/<str:sha256>/",
        resume_packets.IssuedPacket.as_view(),
        name="issued-packet",
    ),
    path("workflows/<uuid:workflow_id>/steps/<str:name>/edit/", steps.StepEdit.as_view(), name="edit"),
    path("steps/<uuid:step_id>/", steps.OneStep.as_view(), name="step"),
    path("steps/<uuid:step_id>/evidence/", steps.StepEvidence.as_view(), name="evidence"),
    path("steps/<uuid:step_id>/compensation/", steps.Compensation.as_view(), name="compensation"),
    path("workflows/<uuid:workflow_id>/artifacts/", artifacts.Artifacts.as_view(), name="artifacts"),
    path("artifacts/<uuid:artifact_id>/", artifacts.OneArtifact.as_view(), name="artifact"),
    path("artifacts/<uuid:artifact_id>/content/", artifacts.ArtifactContent.as_view(), name="artifact-content"),
    path("audit/", audit.Audit.as_view(), name="audit"),
    path("audit/export/", audit.AuditExport.as_view(), name="audit-export"),
    path("audit/<uuid:stream>/<int:seq>/", audit.OneAuditEntry.as_view(), name="audit-entry"),
    path("steps/<uuid:step_id>/begin/", agent_steps.Begin.as_view(), name="begin"),
    path("steps/<uuid:step_id>/lease/", agent_steps.Lease.as_view(), name="lease"),
    path("steps/<uuid:step_id>/record/", agent_steps.Record.as_view(), name="record"),
    path("tools/", tools.Tools.as_view(), name="tools"),
    path("tools/<str:name>/", tools.OneTool.as_view(), name="tool"),
]
