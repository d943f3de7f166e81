"""Parts of the OpenAPI document that several views share."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import OpenApiParameter, OpenApiResponse, inline_serializer
from rest_framework import serializers

from checkpoint.api.problems import MEDIA_TYPE
from checkpoint.api.representations import ProblemShown

KEY = OpenApiParameter(
    "Idempotency-Key",
    location=OpenApiParameter.HEADER,
    required=True,
    description="Names this request, for instance a UUID. Sent again under the same key it is carried out once, and "
    "answered the same, with Idempotency-Replayed: true. Replies are kept for seven days.",
)
DOCUMENT: dict[str, Any] = {
    "application/json": {"type": "object", "description": "A workflow, as docs/submitting-a-workflow.md describes it."},
    "application/yaml": {"type": "object"},
}
REASON: dict[str, Any] = {
    "application/json": {
        "type": "object",
        "required": ["reason"],
        "additionalProperties": False,
        "properties": {"reason": {"type": "string", "description": "Why; kept in the audit trail."}},
    }
}
APPENDED: dict[str, Any] = {
    kind: {
        "type": "object",
        "required": ["steps"],
        "additionalProperties": False,
        "properties": {
            "steps": {
                "type": "array",
                "minItems": 1,
                "items": {"type": "object", "description": "As docs/submitting-a-workflow.md describes a step."},
            },
            "sealed": {"type": "boolean", "default": False, "description": "These steps are the last."},
        },
    }
    for kind in ("application/json", "application/yaml")
}
_LEASE = {"type": "number", "minimum": 5, "maximum": 86400, "description": "Seconds without a heartbeat."}
BEGIN: dict[str, Any] = {
    "application/json": {"type": "object", "additionalProperties": False, "properties": {"lease_seconds": _LEASE}}
}
HOLD: dict[str, Any] = {
    "application/json": {
        "type": "object",
        "required": ["fence", "lease_seconds"],
        "additionalProperties": False,
        "properties": {"fence": {"type": "integer"}, "lease_seconds": _LEASE},
    }
}
RECORD: dict[str, Any] = {
    "application/json": {
        "type": "object",
        "required": ["fence", "outcome"],
        "additionalProperties": False,
        "properties": {
            "fence": {"type": "integer", "description": "From the answer to begin."},
            "outcome": {"type": "string", "enum": ["receipt", "not_applied", "unknown"]},
            "operation_id": {"type": "string", "maxLength": 255, "description": "The provider's id of the effect."},
            "facts": {"type": "object", "description": "Of a receipt: what is worth keeping, at most 16 KiB."},
            "reading": {"type": "object", "description": "Of a receipt: what you then read of the outcome yourself."},
            "message": {"type": "string", "description": "Of the other outcomes: what happened."},
            "code": {"type": "string", "maxLength": 60, "description": "Of not_applied: a short word."},
            "retry_after": {"type": "number", "minimum": 0, "description": "Of not_applied: seconds."},
            "permanent": {"type": "boolean", "description": "Of not_applied: trying again cannot succeed."},
        },
    }
}
TOOL: dict[str, Any] = {
    kind: {
        "type": "object",
        "required": ["name", "summary", "schema", "recovery", "reversibility"],
        "additionalProperties": False,
        "properties": {
            "name": {"type": "string", "description": "Without the team; plans call it TEAM:NAME."},
            "version": {"type": "string", "default": "1"},
            "summary": {"type": "string"},
            "schema": {"type": "object", "description": "JSON Schema (2020-12) of the arguments."},
            "recovery": {"type": "string", "enum": ["read_only", "idempotent", "opaque"]},
            "reversibility": {"type": "string", "enum": ["none_needed", "compensable", "irreversible"]},
            "deadline": {"type": "number", "default": 300, "description": "Seconds for one call."},
            "settle": {
                "type": "number",
                "default": 5,
                "description": "Seconds in which it can still land.",
            },
            "key_lifetime": {"type": ["number", "null"], "description": "Seconds; null for ever."},
            "where_to_look": {"type": "string", "description": "A sentence for whoever has to find out."},
            "link": {"type": "string", "description": "Where; {key} and {operation_id} are filled in."},
        },
    }
    for kind in ("application/json", "application/yaml")
}
IF_MATCH = OpenApiParameter(
    "If-Match", location=OpenApiParameter.HEADER, description="The version that was seen, as its ETag."
)
NOTHING: dict[str, Any] = {"application/json": {"type": "object", "additionalProperties": False}}
RESUMPTION: dict[str, Any] = {
    "application/json": {
        "type": "object",
        "required": ["prompt_version"],
        "additionalProperties": False,
        "properties": {"prompt_version": {"type": "string", "maxLength": 100}},
    }
}
COMPENSATION: dict[str, Any] = {
    "application/json": {
        "type": "object",
        "required": ["reason", "step_version"],
        "additionalProperties": False,
        "properties": {
            "reason": {"type": "string", "description": "Why; kept in the audit trail."},
            "step_version": {"type": "integer", "description": "The step's version that was seen."},
        },
    }
}
EDIT: dict[str, Any] = {
    "application/json": {
        "type": "object",
        "required": ["arguments", "reason"],
        "additionalProperties": False,
        "properties": {
            "arguments": {"type": "object", "description": "All of them, with references as at submission."},
            "reason": {"type": "string", "description": "Why; kept in the audit trail."},
        },
    }
}
EXPLANATION = OpenApiResponse({"type": "object", "additionalProperties": True})

_PROBLEM_TEXTS = {
    400: "The request cannot be read, or a header is missing.",
    401: "No token, or one that has ended.",
    403: "You see it, but may not do this; or the token lacks the scope.",
    404: "There is no such thing that you may see.",
    409: "It moved on, or its state does not allow this.",
    412: "If-Match names another version.",
    413: "The body is too large.",
    415: "The body is of a kind that is not read here.",
    422: "The body has faults, or the Idempotency-Key came with another request.",
    429: "Too many requests; Retry-After says when.",
    503: "Too many requests at once, and nothing was done; Retry-After says when.",
}
PROBLEMS: dict[Any, Any] = {
    (status, MEDIA_TYPE): OpenApiResponse(ProblemShown, description=text) for status, text in _PROBLEM_TEXTS.items()
}


def pages_of(serializer: type[serializers.BaseSerializer[Any]]) -> serializers.Serializer[Any]:
    """The schema of a page of such rows."""
    return inline_serializer(
        f"PageOf{serializer.__name__}",
        {
            "items": serializer(many=True),
            "next": serializers.CharField(allow_null=True, help_text="Address of the next page; null on the last."),
        },
    )
