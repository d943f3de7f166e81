"""Checkpoint's REST API as this server uses it: reads, changes under an Idempotency-Key, and refusals in words."""

from __future__ import annotations

from collections.abc import Mapping
from contextvars import ContextVar
from http.cookiejar import CookieJar, DefaultCookiePolicy
from typing import Any, NoReturn

import httpx
from mcp.server.mcpserver.exceptions import ResourceError

from checkpoint_mcp.sending import JSON, Sent

PATIENCE = httpx.Timeout(30, connect=5)  # seconds
MOST_FAULTS = 20

caller_token: ContextVar[str] = ContextVar("caller_token", default="")
"""The token of whoever sent the message that is being answered."""

_NO_TOKEN = "No token. Send your own Checkpoint token with every request, as `Authorization: Bearer cp_…`."
_WHERE_THE_TOKEN_IS = "The token is CHECKPOINT_TOKEN of this server over stdio, your Authorization header over HTTP."


class NotDone(ResourceError):
    """What was asked for was not answered as wanted; the text says what happened and what to do next.

    The SDK hands the text of this kind of error on to the caller, from tools and from resources alike.
    """


class Checkpoint:
    """One installation. Lives as long as the process; each request carries the token of its caller and no cookie.

    Args:
        url: where the console is, without a slash at its end.
    """

    def __init__(self, url: str) -> None:
        self.url = url
        nothing_kept = CookieJar(DefaultCookiePolicy(allowed_domains=[]))
        self._http = httpx.AsyncClient(base_url=f"{url}/api/v1/", timeout=PATIENCE, cookies=nothing_kept)

    async def read(self, address: str, **query: Any) -> Any:
        """The JSON at an address under /api/v1/.

        Raises:
            NotDone: it was refused, or nobody answered.
        """
        return _json(await self._answer("GET", address, "Call again.", params=query))

    async def send(self, sent: Sent) -> tuple[Any, bool]:
        """Has a change made once, however often it is sent: the answer, and whether it was given before.

        Raises:
            NotDone: it was refused, or nobody answered: then it may have been made.
        """
        headers = {"Idempotency-Key": sent.key, "Content-Type": JSON}
        advice = "It may have been carried out. Call again with exactly the same arguments: it is carried out once."
        answer = await self._answer("POST", sent.address, advice, content=sent.body, headers=headers)
        return _json(answer), "Idempotency-Replayed" in answer.headers

    async def content(self, address: str) -> bytes:
        """The bytes at an address.

        Raises:
            NotDone: as `read`.
        """
        return (await self._answer("GET", address, "Call again.")).content

    async def _answer(
        self, method: str, address: str, advice: str, *, headers: Mapping[str, str] | None = None, **more: Any
    ) -> httpx.Response:
        if not (token := caller_token.get()):
            raise NotDone(_NO_TOKEN)
        named = {"Authorization": f"Bearer {token}", **(headers or {})}
        try:
            answer = await self._http.request(method, address, headers=named, **more)
        except httpx.TransportError as error:
            raise NotDone(f"Checkpoint at {self.url} did not answer ({type(error).__name__}). {advice}") from error
        if not answer.is_success:
            _refused(answer)
        return answer


def _json(answer: httpx.Response) -> Any:
    try:
        return answer.json()
    except ValueError:
        _not_checkpoint(answer)


def _refused(answer: httpx.Response) -> NoReturn:
    """In the words of the problem details (RFC 9457), with each fault and its place."""
    if answer.headers.get("Content-Type", "").partition(";")[0] != "application/problem+json":
        _not_checkpoint(answer)
    problem = answer.json()
    named, faults = f"({answer.status_code} {problem['code']})", problem.get("faults", [])
    lines = [f"Nothing was stored. Faults {named}:" if faults else f"{problem['detail']} {named}"]
    lines += [f"{fault['path'] or '/'}: {fault['message']}" for fault in faults[:MOST_FAULTS]]
    if more := faults[MOST_FAULTS:]:
        lines.append(f"And {len(more)} more.")
    if answer.status_code == 401:
        lines.append(_WHERE_THE_TOKEN_IS)
    if seconds := answer.headers.get("Retry-After"):
        lines.append(f"Call again with the same arguments after {seconds} s.")
    raise NotDone("\n".join(lines))


def _not_checkpoint(answer: httpx.Response) -> NoReturn:
    raise NotDone(f"{answer.url} answered {answer.status_code}, not as Checkpoint does. Is CHECKPOINT_URL right?")
