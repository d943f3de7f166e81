"""One client of the API on one kept connection: submits, and repeats under the same key until it has an answer."""

from __future__ import annotations

import http.client
import json
import time
from dataclasses import dataclass
from typing import Any

PATIENCE_SECONDS = 150.0  # above the minute after which a request that was cut down is carried out anew
RETRY_SECONDS = 0.2


@dataclass(frozen=True)
class Answer:
    """A submission that was answered.

    Attributes:
        workflow: id of the workflow that the answer names.
        sent: how often the request was sent.
        late: seconds between the time at which it was due and its first sending.
        seconds: from the first sending to the answer.
    """

    number: int
    workflow: str
    sent: int
    late: float
    seconds: float


def document(number: int) -> dict[str, Any]:
    """A workflow of one step."""
    steps = [{"name": "only", "tool": "bench.noop", "arguments": {"number": number}}]
    return {"goal": f"Measure {number}.", "kind": "load", "prompt_version": "1", "steps": steps}


class Submitter:
    """Keeps one connection, and makes another where it broke."""

    def __init__(self, port: int, token: str) -> None:
        self.connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
        self.token = token

    def submit(self, number: int, *, due: float, hang_up: bool) -> Answer:
        """Sends until it is answered.

        Args:
            due: the monotonic time at which it was to be sent.
            hang_up: close the connection once, after sending and before any answer.

        Raises:
            TimeoutError: no answer for so long that the request counts as lost.
            ValueError: the request was refused.
        """
        began, sent = time.monotonic(), 0
        while time.monotonic() < began + PATIENCE_SECONDS:
            sent += 1
            try:
                self._send(number)
                if hang_up and sent == 1:
                    self.connection.close()
                    continue
                response = self.connection.getresponse()
                body = response.read()
            except (OSError, http.client.HTTPException):
                self.connection.close()
                time.sleep(RETRY_SECONDS)
                continue
            if response.status == 201:
                now = time.monotonic()
                return Answer(number, str(json.loads(body)["id"]), sent, began - due, now - began)
            if response.status not in (409, 503):
                raise ValueError(f"{response.status} {body[:300]!r}")
            time.sleep(float(response.headers.get("Retry-After", RETRY_SECONDS)))
        raise TimeoutError(f"no answer within {PATIENCE_SECONDS} s, sent {sent} times")

    def _send(self, number: int) -> None:
        headers = {
            "Authorization": f"Bearer {self.token}",
            "Content-Type": "application/json",
            "Idempotency-Key": f"load-{number}",
        }
        self.connection.request("POST", "/api/v1/workflows/", json.dumps(document(number)), headers)
