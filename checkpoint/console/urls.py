"""Addresses of the pages on workflows."""

from __future__ import annotations

from django.contrib.auth.views import LoginView, LogoutView
from django.urls import path

from checkpoint.console import (
    abandonment,
    artifact_views,
    audit_views,
    compensation,
    downloads,
    evidence,
    overview,
    packet_page,
    people_views,
    timeline,
    token_views,
    tools,
    views,
)

urlpatterns = [
    path("", views.home, name="home"),
    path("overview/", overview.overview, name="overview"),
    path("login/", LoginView.as_view(template_name="login.html", redirect_authenticated_user=True), name="login"),
    path("logout/", LogoutView.as_view(), name="logout"),
    path("workflows/", views.workflow_list, name="workflows"),
    path("workflows/<uuid:workflow_id>/", views.workflow, name="workflow"),
    path("workflows/<uuid:workflow_id>/times/", timeline.timeline, name="timeline"),
    path("workflows/<uuid:workflow_id>/abandonment/", abandonment.abandonment, name="abandonment"),
    path("workflows/<uuid:workflow_id>/input.txt", downloads.workflow_input, name="workflow_input"),
    path("workflows/<uuid:workflow_id>/resume-packet/", packet_page.resume_packet, name="resume_packet"),
    path("workflows/<uuid:workflow_id>/artifacts/", artifact_views.artifacts_of, name="artifacts"),
    path("artifacts/<uuid:artifact_id>/", artifact_views.artifact, name="artifact"),
    path("artifacts/<uuid:artifact_id>/content", artifact_views.content, name="artifact_content"),
    path("artifacts/<uuid:artifact_id>/picture", artifact_views.picture, name="artifact_picture"),
    path("steps/<uuid:step_id>/compensation/", compensation.compensation, name="compensation"),
    path("steps/<uuid:step_id>/arguments.txt", downloads.step_arguments, name="step_arguments"),
    path("audit/", audit_views.search, name="audit"),
    path("audit/export", audit_views.export, name="audit_export"),
    path("audit/<uuid:stream>/<int:seq>/", audit_views.entry, name="audit_entry"),
    path("tools/", tools.tools, name="tools"),
    path("tools/<str:name>/", tools.tool, name="tool"),
    path("tokens/", token_views.token_list, name="tokens"),
    path("tokens/<uuid:token_id>/revocation/", token_views.revocation, name="token_revocation"),
    path("people/", people_views.people, name="people"),
    path("people/<int:account_id>/", people_views.person, name="person"),
    path("people/<int:account_id>/access/", people_views.access, name="person_access"),
    path("evidence/<uuid:evidence_id>/", evidence.evidence, name="evidence"),
    path("evidence/<uuid:evidence_id>/facts.txt", downloads.evidence_facts, name="evidence_facts"),
]
