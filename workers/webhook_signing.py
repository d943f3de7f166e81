"""Signatures of Standard Webhooks (standardwebhooks.com, specification 1.0.0), version 1: HMAC-SHA256."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac

from checkpoint.outcomes import NotApplied

SECRET_PREFIX = "whsec_"


def signed_headers(secret: str, *, message_id: str, timestamp: int, content: bytes) -> dict[str, str]:
    """The headers that say which message it is, from when, and by whom.

    Args:
        timestamp: seconds since 1970, of this try.

    Raises:
        NotApplied: the secret is not of the form `whsec_` and base64.
    """
    return {
        "webhook-id": message_id,
        "webhook-timestamp": str(timestamp),
        "webhook-signature": signature(secret, message_id, timestamp, content),
    }


def signature(secret: str, message_id: str, timestamp: int, content: bytes) -> str:
    """The header webhook-signature, over id, time and content. Raises as `signed_headers`."""
    try:
        key = base64.b64decode(secret.removeprefix(SECRET_PREFIX), validate=True)
    except binascii.Error:
        key = b""
    if not secret.startswith(SECRET_PREFIX) or not key:
        raise NotApplied("nothing was sent: the webhook's secret is not “whsec_” followed by base64")
    signed = f"{message_id}.{timestamp}.".encode() + content
    return f"v1,{base64.b64encode(hmac.digest(key, signed, hashlib.sha256)).decode()}"
