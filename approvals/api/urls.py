"""Addresses of questions, under /api/v1/."""

from __future__ import annotations

from django.urls import path

from approvals.api import cases, questions, requests

app_name = "approvals-api"

urlpatterns = [
    path("questions/", questions.Questions.as_view(), name="questions"),
    path("cases/<uuid:case_id>/", cases.OneCase.as_view(), name="case"),
    path("cases/<uuid:case_id>/decision/", cases.CaseDecision.as_view(), name="case-decision"),
    path("approvals/<uuid:approval_id>/", requests.OneRequest.as_view(), name="approval"),
    path("approvals/<uuid:approval_id>/decision/", requests.RequestDecision.as_view(), name="approval-decision"),
    path("approvals/<uuid:approval_id>/withdrawal/", requests.Withdrawal.as_view(), name="withdrawal"),
]
