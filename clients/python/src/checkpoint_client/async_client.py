"""The asynchronous client; `client` explains what each method does."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any, TypeVar

import httpx

from checkpoint_client import attempts
from checkpoint_client.attempts import Attempt, Plan
from checkpoint_client.client import API, TIMEOUT, headers_of, reply_of, settings
from checkpoint_client.errors import CheckpointError
from checkpoint_client.wire import Call, Pause, Reply, Steps, get, post, put

T = TypeVar("T")
R = TypeVar("R")
AsyncAttempt = Attempt


class AsyncClient:
    """Speaks with one server, in the name of one token."""

    def __init__(
        self, url: str, token: str, *, timeout: float = TIMEOUT, transport: httpx.AsyncBaseTransport | None = None
    ) -> None:
        headers = {"Authorization": f"Bearer {token}"}
        self._http = httpx.AsyncClient(
            base_url=url.rstrip("/") + API, headers=headers, timeout=timeout, transport=transport
        )

    @classmethod
    def from_env(cls) -> AsyncClient:
        """As `Client.from_env`."""
        return cls(*settings())

    async def __aenter__(self) -> AsyncClient:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._http.aclose()

    def run(self, reference: str, *, goal: str, team: str = "", constraints: tuple[str, ...] = ()) -> AsyncRun:
        """As `Client.run`."""
        return AsyncRun(self, Plan(reference, goal, team, constraints))

    async def submit(self, document: Mapping[str, Any], *, team: str = "") -> dict[str, Any]:
        """As `Client.submit`."""
        reply = await self._drive(post("workflows/", dict(document), **({"team": team} if team else {})))
        submitted: dict[str, Any] = reply.body
        return submitted

    async def workflow(self, workflow_id: str) -> dict[str, Any]:
        """As `Client.workflow`."""
        found: dict[str, Any] = await self._drive(get(f"workflows/{workflow_id}/"))
        return found

    async def record(self, step_id: str, report: Mapping[str, Any]) -> None:
        """As `Client.record`."""
        await self._drive(post(f"steps/{step_id}/record/", dict(report)))

    async def hold(self, attempt: Attempt, seconds: float) -> None:
        """As `Client.hold`."""
        await self._drive(put(f"steps/{attempt.step_id}/lease/", {"fence": attempt.fence, "lease_seconds": seconds}))

    async def _drive(self, steps: Steps[T]) -> T:
        reply: Reply | None = None
        while True:
            try:
                wanted = steps.send(reply)
            except StopIteration as ended:
                result: T = ended.value
                return result
            if isinstance(wanted, Pause):
                await asyncio.sleep(wanted.seconds)
                reply = None
            else:
                reply = await self._send(wanted)

    async def _send(self, call: Call) -> Reply | None:
        try:
            response = await self._http.request(
                call.method, call.path, json=call.body, params=call.query or None, headers=headers_of(call)
            )
        except httpx.TransportError:
            return None
        return reply_of(response)


class AsyncRun:
    """As `Run`, for coroutines."""

    def __init__(self, client: AsyncClient, plan: Plan) -> None:
        self._client = client
        self._plan = plan

    @asynccontextmanager
    async def attempt(
        self, name: str, tool: str, arguments: Mapping[str, Any], *, wait: float = 0.0
    ) -> AsyncIterator[Attempt]:
        """As `Run.attempt`."""
        begun = await self._client._drive(attempts.begin(self._plan, name, tool, arguments, wait=wait))
        if not begun.is_new:
            yield begun
            return
        try:
            yield begun
            report = attempts.success(begun, begun.receipt or attempts.Receipt())
        except BaseException as error:
            # Also where the task is cancelled: that nobody knows how it went is worth saying.
            await asyncio.shield(self._client._drive(attempts.record(begun, attempts.failure(begun, error))))
            raise
        await self._client._drive(attempts.record(begun, report))

    def step(
        self, tool: str, *, name: str = "", wait: float = 0.0
    ) -> Callable[[Callable[..., Awaitable[R]]], Callable[..., Awaitable[R]]]:
        """As `Run.step`, for a coroutine function."""

        def decorate(function: Callable[..., Awaitable[R]]) -> Callable[..., Awaitable[R]]:
            @functools.wraps(function)
            async def durable(**arguments: Any) -> R:
                step = name or getattr(function, "__name__", "")
                async with self.attempt(step, tool, arguments, wait=wait) as attempt:
                    if attempt.is_new:
                        attempt.done(attempts.receipt_of(await function(**attempt.arguments)))
                value: R = attempts.value_of(attempt.receipt or attempts.Receipt())
                return value

            return durable

        return decorate

    async def seal(self, reason: str) -> None:
        """As `Run.seal`."""
        workflow = await self._client._drive(attempts.find(self._plan))
        if workflow is None:
            raise CheckpointError(f"The run “{self._plan.reference}” has no step yet, so there is nothing to seal.")
        await self._client._drive(post(f"workflows/{workflow['id']}/seal/", {"reason": reason}))
