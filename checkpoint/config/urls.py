"""Every address of the installation."""

from __future__ import annotations

from django.urls import URLPattern, URLResolver, include, path

urlpatterns: list[URLPattern | URLResolver] = [
    path("", include("checkpoint.console.urls")),
    path("", include("approvals.console.urls")),
]

handler400 = "checkpoint.console.refusals.bad_request"
handler403 = "checkpoint.console.refusals.permission_denied"
handler404 = "checkpoint.console.refusals.not_found"
handler500 = "checkpoint.console.refusals.server_error"
