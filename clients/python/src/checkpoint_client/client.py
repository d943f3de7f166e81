"""The synchronous client."""

from __future__ import annotations

import functools
import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, TypeVar

import httpx

from checkpoint_client import attempts
from checkpoint_client.attempts import Attempt, Plan
from checkpoint_client.errors import CheckpointError
from checkpoint_client.wire import Call, Pause, Reply, Steps, get, post, put

T = TypeVar("T")
R = TypeVar("R")
TIMEOUT = 30.0  # seconds for one request
API = "/api/v1/"


def settings() -> tuple[str, str]:
    """Address and token from the environment. Raises CheckpointError where one is missing."""
    url, token = os.environ.get("CHECKPOINT_URL", ""), os.environ.get("CHECKPOINT_TOKEN", "")
    if not url or not token:
        raise CheckpointError(
            "Set CHECKPOINT_URL (such as http://127.0.0.1:8000) and CHECKPOINT_TOKEN (from `manage.py token issue`)."
        )
    return url, token


def headers_of(call: Call) -> dict[str, str]:
    """What a call needs beside the token."""
    return {"Idempotency-Key": call.key} if call.key else {}


def reply_of(response: httpx.Response) -> Reply:
    """An answer; a body that is no JSON counts as none."""
    try:
        body = response.json()
    except ValueError:
        body = None
    wait = response.headers.get("Retry-After", "")
    return Reply(response.status_code, body, float(wait) if wait.isdecimal() else 0.0)


class Client:
    """Speaks with one server, in the name of one token."""

    def __init__(
        self, url: str, token: str, *, timeout: float = TIMEOUT, transport: httpx.BaseTransport | None = None
    ) -> None:
        headers = {"Authorization": f"Bearer {token}"}
        self._http = httpx.Client(base_url=url.rstrip("/") + API, headers=headers, timeout=timeout, transport=transport)

    @classmethod
    def from_env(cls) -> Client:
        """With CHECKPOINT_URL and CHECKPOINT_TOKEN."""
        return cls(*settings())

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self._http.close()

    def run(self, reference: str, *, goal: str, team: str = "", constraints: tuple[str, ...] = ()) -> Run:
        """A run of this program: the same reference is the same run, on every machine and for ever.

        Args:
            team: needed by who is in several.
        """
        return Run(self, Plan(reference, goal, team, constraints))

    def submit(self, document: Mapping[str, Any], *, team: str = "") -> dict[str, Any]:
        """Submits a whole workflow, for workers to carry out."""
        reply = self._drive(post("workflows/", dict(document), **({"team": team} if team else {})))
        submitted: dict[str, Any] = reply.body
        return submitted

    def workflow(self, workflow_id: str) -> dict[str, Any]:
        """A workflow as it is now."""
        found: dict[str, Any] = self._drive(get(f"workflows/{workflow_id}/"))
        return found

    def record(self, step_id: str, report: Mapping[str, Any]) -> None:
        """Records what could not be recorded before; see `NotRecorded`."""
        self._drive(post(f"steps/{step_id}/record/", dict(report)))

    def hold(self, attempt: Attempt, seconds: float) -> None:
        """The heartbeat. Refused with the code fence_moved where somebody else acts on the step: stop then."""
        self._drive(put(f"steps/{attempt.step_id}/lease/", {"fence": attempt.fence, "lease_seconds": seconds}))

    def _drive(self, steps: Steps[T]) -> T:
        reply: Reply | None = None
        while True:
            try:
                wanted = steps.send(reply)
            except StopIteration as ended:
                result: T = ended.value
                return result
            if isinstance(wanted, Pause):
                time.sleep(wanted.seconds)
                reply = None
            else:
                reply = self._send(wanted)

    def _send(self, call: Call) -> Reply | None:
        try:
            response = self._http.request(
                call.method, call.path, json=call.body, params=call.query or None, headers=headers_of(call)
            )
        except httpx.TransportError:
            return None
        return reply_of(response)


class Run:
    """One run: a workflow that grows by a step whenever the program comes to a new one."""

    def __init__(self, client: Client, plan: Plan) -> None:
        self._client = client
        self._plan = plan

    @contextmanager
    def attempt(self, name: str, tool: str, arguments: Mapping[str, Any], *, wait: float = 0.0) -> Iterator[Attempt]:
        """A block that carries a step out: `if attempt.is_new: …; attempt.done(Receipt(…))`.

        Raises:
            Waiting, NotBegun: before the block; nothing may be done.
            NotRecorded: after it.
        """
        begun = self._client._drive(attempts.begin(self._plan, name, tool, arguments, wait=wait))
        if not begun.is_new:
            yield begun
            return
        try:
            yield begun
            report = attempts.success(begun, begun.receipt or attempts.Receipt())
        except BaseException as error:
            self._client._drive(attempts.record(begun, attempts.failure(begun, error)))
            raise
        self._client._drive(attempts.record(begun, report))

    def step(self, tool: str, *, name: str = "", wait: float = 0.0) -> Callable[[Callable[..., R]], Callable[..., R]]:
        """Makes a function a durable step: called once in all runs, with keyword arguments that are JSON values.

        Args:
            name: of the step in the plan; the function's by default.
            wait: seconds to wait until it may run, for an approval for instance.
        """

        def decorate(function: Callable[..., R]) -> Callable[..., R]:
            @functools.wraps(function)
            def durable(**arguments: Any) -> R:
                with self.attempt(name or function.__name__, tool, arguments, wait=wait) as attempt:
                    if attempt.is_new:
                        attempt.done(attempts.receipt_of(function(**attempt.arguments)))
                value: R = attempts.value_of(attempt.receipt or attempts.Receipt())
                return value

            return durable

        return decorate

    def seal(self, reason: str) -> None:
        """Says that nothing more comes: the workflow is completed once every step is verified."""
        workflow = self._client._drive(attempts.find(self._plan))
        if workflow is None:
            raise CheckpointError(f"The run “{self._plan.reference}” has no step yet, so there is nothing to seal.")
        self._client._drive(post(f"workflows/{workflow['id']}/seal/", {"reason": reason}))
