"""Reads the system's audit stream as an auditor would: entries as they were hashed."""

from __future__ import annotations

import json
from typing import Any

from checkpoint import audit
from checkpoint.models import AuditEntry


def system_entries(*verbs: str) -> list[dict[str, Any]]:
    """The entries of the system's stream with these verbs (all without any), oldest first."""
    texts = AuditEntry.objects.filter(stream_id=audit.SYSTEM_STREAM).order_by("seq").values_list("text", flat=True)
    entries = [json.loads(text) for text in texts]
    return [entry for entry in entries if not verbs or entry["verb"] in verbs]


def said(*verbs: str) -> list[tuple[str, str, str, str, str]]:
    """As `system_entries`, in short: actor, verb, subject, before, after."""
    return [
        (entry["actor"], entry["verb"], entry["subject"], entry.get("before", ""), entry.get("after", ""))
        for entry in system_entries(*verbs)
    ]
