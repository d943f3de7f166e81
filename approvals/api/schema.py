"""Bodies of answers, as OpenAPI tells them."""

from __future__ import annotations

from typing import Any

from approvals.bulk.states import ANSWERS
from checkpoint.states import Decision

_REASON = {"type": "string", "description": "Why; kept in the audit trail."}
_HASH = {"type": "string", "description": "arguments_hash of what the person was shown."}
_ON_REQUESTS = (Decision.APPROVE, Decision.REJECT, Decision.REQUEST_CHANGES)


def _body(required: list[str], **properties: Any) -> dict[str, Any]:
    schema = {"type": "object", "required": required, "additionalProperties": False, "properties": properties}
    return {"application/json": schema}


POLICY_TEXT = _body(["text"], text={"type": "string", "description": "YAML, as docs/policies.md describes it."})
POLICY = _body(
    ["text", "reason", "seen"],
    text={"type": "string", "description": "YAML, as docs/policies.md describes it."},
    reason=_REASON,
    seen={"type": "integer", "description": "Number of the version in force that it was compared with."},
)
_IDS = {"type": "array", "items": {"type": "string", "format": "uuid"}}
BULK_JOB = _body(
    ["kind", "reason"],
    kind={"type": "string", "enum": [kind.value for kinds in ANSWERS.values() for kind in kinds]},
    reason=_REASON,
    cases=_IDS,
    approvals=_IDS,
)
CASE_ANSWER = _body(
    ["kind", "reason", "step_version"],
    kind={"type": "string", "enum": [kind.value for kind in Decision if kind not in _ON_REQUESTS]},
    reason=_REASON,
    step_version={"type": "integer", "description": "step_version of what the person was shown."},
    arguments_hash=_HASH,
    operation_id={"type": "string", "maxLength": 255, "description": "The provider's id, where the person found it."},
    data={
        "type": "object",
        "description": "With the kind answer: what the form asks for that is in the step's arguments.",
    },
)
REQUEST_ANSWER = _body(
    ["kind", "reason", "arguments_hash"],
    kind={"type": "string", "enum": [kind.value for kind in _ON_REQUESTS]},
    reason=_REASON,
    arguments_hash=_HASH,
)
