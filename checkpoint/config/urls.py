"""Every address of the installation."""

from __future__ import annotations

from django.urls import URLPattern, URLResolver, include, path, re_path

from checkpoint.api.index import NoSuchAddress

urlpatterns: list[URLPattern | URLResolver] = [
    path("api/v1/", include("checkpoint.api.urls")),
    path("api/v1/", include("approvals.api.urls")),
    re_path(r"^api/", NoSuchAddress.as_view()),
    path("", include("checkpoint.console.urls")),
    path("", include("approvals.console.urls")),
]

handler400 = "checkpoint.console.refusals.bad_request"
handler403 = "checkpoint.console.refusals.permission_denied"
handler404 = "checkpoint.console.refusals.not_found"
handler500 = "checkpoint.console.refusals.server_error"
