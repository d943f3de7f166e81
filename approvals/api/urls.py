"""Addresses of questions, under /api/v1/."""

from __future__ import annotations

from django.urls import path

from approvals.api import bulk_jobs, cases, policies, questions, requests

app_name = "approvals-api"

urlpatterns = [
    path("questions/", questions.Questions.as_view(), name="questions"),
    path("policies/", policies.Policies.as_view(), name="policies"),
    path("policies/trial/", policies.PolicyTrial.as_view(), name="policy-trial"),
    path("policies/<int:number>/", policies.OnePolicy.as_view(), name="policy"),
    path("bulk-jobs/", bulk_jobs.BulkJobs.as_view(), name="bulk-jobs"),
    path("bulk-jobs/<uuid:job_id>/", bulk_jobs.OneBulkJob.as_view(), name="bulk-job"),
    path("bulk-jobs/<uuid:job_id>/items/", bulk_jobs.BulkItems.as_view(), name="bulk-items"),
    path("bulk-jobs/<uuid:job_id>/start/", bulk_jobs.BulkStart.as_view(), name="bulk-start"),
    path("bulk-jobs/<uuid:job_id>/abort/", bulk_jobs.BulkAbort.as_view(), name="bulk-abort"),
    path("cases/<uuid:case_id>/", cases.OneCase.as_view(), name="case"),
    path("cases/<uuid:case_id>/decision/", cases.CaseDecision.as_view(), name="case-decision"),
    path("approvals/<uuid:approval_id>/", requests.OneRequest.as_view(), name="approval"),
    path("approvals/<uuid:approval_id>/decision/", requests.RequestDecision.as_view(), name="approval-decision"),
    path("approvals/<uuid:approval_id>/withdrawal/", requests.Withdrawal.as_view(), name="withdrawal"),
]
