"""Refusals as problem details (RFC 9457): what happened, what to do next, and a code that stays the same."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

from django.core.exceptions import PermissionDenied, RequestDataTooBig
from django.http import Http404
from rest_framework import exceptions
from rest_framework.response import Response

from checkpoint import errors, occasions
from checkpoint.errors import CheckpointError, SubmissionInvalid
from checkpoint.transactions import no_connection_free

log = logging.getLogger(__name__)

MEDIA_TYPE = "application/problem+json"
_BROKEN = (
    "It was logged under the request id. What you sent may have been recorded: read it again before you repeat it."
)

# The first that fits.
_STATUS: Mapping[type[CheckpointError], int] = {
    errors.TokenRefused: 401,
    errors.Forbidden: 403,
    errors.NotFound: 404,
    errors.Conflict: 409,
    errors.BytesNotKept: 409,
    errors.ArtifactTooLarge: 413,
    errors.SubmissionInvalid: 422,
    errors.DecisionIncomplete: 422,
    errors.ActionIncomplete: 422,
    errors.KeyReused: 422,
    errors.BudgetTooSmall: 422,
    errors.FilterInvalid: 400,
    errors.TooManyFollowers: 429,
}


class PreconditionFailed(exceptions.APIException):
    """What If-Match names is not what is there now (RFC 9110, 13.1.1)."""

    status_code = 412
    default_code = "version_moved"


class KeyMissing(exceptions.APIException):
    """A POST without an Idempotency-Key (S50)."""

    status_code = 400
    default_code = "idempotency_key_missing"


class BodyTooLarge(exceptions.APIException):
    """More bytes than the address takes; what is over the limit was not read."""

    status_code = 413
    default_code = "body_too_large"


class BodyIncomplete(exceptions.APIException):
    """The connection ended before the body did: nobody is there to read this, and nothing was done."""

    status_code = 400
    default_code = "body_incomplete"
    default_detail = "The connection ended before the request did. Nothing was done; send it again under the same key."


def answer(error: Exception, context: Mapping[str, Any]) -> Response:
    """The problem that an error is; one that nobody foresaw is logged and answered with 500."""
    match error:
        case CheckpointError():
            status = next((status for kind, status in _STATUS.items() if isinstance(error, kind)), 500)
            if status == 500:
                log.error("%s", error, exc_info=error)
            answered = problem(status, error.code, str(error), faults=_faults(error))
            if seconds := getattr(error, "retry_after", 0.0):
                answered["Retry-After"] = str(max(1, round(seconds)))
            return answered
        case exceptions.APIException():
            return _of_framework(error)
        case Http404():
            return problem(404, "not_found", "There is no such thing, or you may not see it.")
        case PermissionDenied():
            return problem(403, "forbidden", "Your account lacks the right for this.")
        case RequestDataTooBig():
            return problem(413, BodyTooLarge.default_code, str(error))
    return _unforeseen(error)


def _unforeseen(error: Exception) -> Response:
    if no_connection_free(error):
        answered = problem(503, "busy", "Too many requests at once, and nothing was done. Send it again in a moment.")
        answered["Retry-After"] = "1"
        return answered
    log.error("%s", error, exc_info=error)
    return problem(500, "broken", _BROKEN)


def problem(status: int, code: str, detail: str, *, faults: list[dict[str, str]] | None = None) -> Response:
    """A problem as RFC 9457 writes it; `code` is also the end of its `type`."""
    occasion = occasions.current()
    if status in (401, 403, 404):
        occasion.refusal = detail
    body: dict[str, Any] = {
        "type": f"urn:checkpoint:problem:{code}",
        "title": HTTPStatus(status).phrase,
        "status": status,
        "detail": detail,
        "instance": f"urn:checkpoint:request:{occasion.request_id}",
        "code": code,
    }
    if faults is not None:
        body["faults"] = faults
    return Response(body, status=status, content_type=MEDIA_TYPE)


def _faults(error: CheckpointError) -> list[dict[str, str]] | None:
    if isinstance(error, SubmissionInvalid):
        return [{"path": fault.path, "message": fault.message} for fault in error.faults]
    return None


def _of_framework(error: exceptions.APIException) -> Response:
    codes = error.get_codes()
    code = codes if isinstance(codes, str) else "request_invalid"
    answered = problem(error.status_code, code, _sentence(error.detail))
    if isinstance(error, exceptions.AuthenticationFailed | exceptions.NotAuthenticated):
        answered["WWW-Authenticate"] = getattr(error, "auth_header", "Bearer")
    if (wait := getattr(error, "wait", None)) is not None:  # Throttled has it, its type stub does not
        answered["Retry-After"] = str(int(wait) + 1)
    return answered


def _sentence(detail: Any) -> str:
    if isinstance(detail, dict):
        return " ".join(f"{field}: {_sentence(value)}" for field, value in detail.items())
    return " ".join(map(_sentence, detail)) if isinstance(detail, list) else str(detail)
