"""What is sent to Checkpoint to change something, under a key that is the same whenever the same thing is meant.

A model whose call was cut down calls again, perhaps in another process and without any memory of a key. So the key is
made from what is sent. Who means a second one like the first names it with a `request_key`, and then that is the key:
other content under the same name is refused by Checkpoint instead of being a second effect.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from typing import Any

JSON = "application/json"


@dataclass(frozen=True)
class Sent:
    """One POST: an address under /api/v1/, the exact bytes of its body, and its Idempotency-Key."""

    address: str
    body: bytes
    key: str


def sent(address: str, content: dict[str, Any], request_key: str) -> Sent:
    """The same for the same arguments, in every process. Members that are None are left out.

    Args:
        request_key: what the caller calls this request; empty where its content says what is meant.
    """
    body = _text({name: value for name, value in content.items() if value is not None})
    meant = _text([address, "named", request_key]) if request_key else _text([address, "content"]) + body
    return Sent(address, body, f"mcp-{hashlib.sha256(meant).hexdigest()}")


def _text(value: Any) -> bytes:
    return json.dumps(value, sort_keys=True, separators=(",", ":")).encode()
