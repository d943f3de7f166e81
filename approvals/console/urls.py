"""Addresses of the review queue, of cases, of requests for approval, of bulk jobs, of notices and of policies."""

from __future__ import annotations

from django.urls import path

from approvals.console import bulk, case_work, changes, inbox, notices, policies, requests, views

urlpatterns = [
    path("review/", inbox.review, name="review"),
    path("review/changes", changes.changes, name="review_changes"),
    path("review/views/", inbox.keep_view, name="view_keep"),
    path("review/views/<uuid:view_id>/removal/", inbox.remove_view, name="view_removal"),
    path("cases/<uuid:case_id>/", views.case, name="case"),
    path("cases/<uuid:case_id>/decision/", views.decision, name="decision"),
    path("cases/<uuid:case_id>/claim/", case_work.claim, name="case_claim"),
    path("cases/<uuid:case_id>/release/", case_work.release, name="case_release"),
    path("cases/<uuid:case_id>/assignment/", case_work.assignment, name="case_assignment"),
    path("cases/<uuid:case_id>/snooze/", case_work.snooze, name="case_snooze"),
    path("cases/<uuid:case_id>/wake/", case_work.wake, name="case_wake"),
    path("cases/<uuid:case_id>/comments/", case_work.comment, name="case_comment"),
    path("cases/<uuid:case_id>/escalation/", case_work.escalation, name="case_escalation"),
    path("cases/<uuid:case_id>/files/", case_work.file, name="case_file"),
    path("files/<uuid:attachment_id>/", case_work.download, name="case_file_download"),
    path("approvals/<uuid:approval_id>/", requests.approval, name="approval"),
    path("approvals/<uuid:approval_id>/answer/", requests.answer, name="approval_answer"),
    path("approvals/<uuid:approval_id>/withdrawal/", requests.withdrawal, name="approval_withdrawal"),
    path("bulk-jobs/", bulk.bulk_jobs, name="bulk_jobs"),
    path("bulk-jobs/<uuid:job_id>/", bulk.bulk_job, name="bulk_job"),
    path("bulk-jobs/<uuid:job_id>/start/", bulk.bulk_start, name="bulk_start"),
    path("bulk-jobs/<uuid:job_id>/password/", bulk.bulk_password, name="bulk_password"),
    path("bulk-jobs/<uuid:job_id>/abort/", bulk.bulk_abort, name="bulk_abort"),
    path("notices/", notices.notice_list, name="notices"),
    path("notices/<uuid:notice_id>/", notices.notice, name="notice"),
    path("notices/<uuid:notice_id>/redelivery/", notices.notice_redelivery, name="notice_redelivery"),
    path("notices/settings/", notices.settings, name="notice_settings"),
    path("notices/channels/", notices.channels, name="notice_channels"),
    path("notices/channels/<uuid:channel_id>/switch/", notices.channel_switch, name="notice_channel_switch"),
    path("policies/", policies.policies, name="policies"),
    path("policies/<int:number>/", policies.policy, name="policy"),
    path("policies/difference/", policies.difference, name="policy_difference"),
    path("policies/activation/", policies.activation, name="policy_activation"),
]
