"""Addresses of the review queue and of cases."""

from __future__ import annotations

from django.urls import path

from approvals.console import views

urlpatterns = [
    path("review/", views.review, name="review"),
    path("cases/<uuid:case_id>/", views.case, name="case"),
    path("cases/<uuid:case_id>/decision/", views.decision, name="decision"),
]
