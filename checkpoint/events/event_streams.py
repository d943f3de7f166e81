"""Events as server-sent events (WHATWG HTML, 9.2), over ASGI: no thread and no connection is held for a stream."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable

from asgiref.sync import sync_to_async
from django.db import connections
from django.http import StreamingHttpResponse

from checkpoint.events.event_sources import Batch
from checkpoint.events.following import Follower

MEDIA_TYPE = "text/event-stream"
LAST_EVENT = "Last-Event-ID"
_COMES_AGAIN_AFTER = b"retry: 2000\n\n"  # milliseconds, with a place, whenever a stream has ended


def stream(follower: Follower, write: Callable[[Batch], str]) -> StreamingHttpResponse:
    """The follower's batches as they come. `write` makes text of one, by `message` and `still_alive`."""
    headers = {"Cache-Control": "private, no-cache", "X-Accel-Buffering": "no"}
    return StreamingHttpResponse(_Body(follower, write), content_type=MEDIA_TYPE, headers=headers)


def message(*, place: str, data: str, name: str = "") -> str:
    """One message; `data` is a text without line breaks of its own, JSON for instance."""
    lines = [f"id: {place}", *([f"event: {name}"] if name else []), *(f"data: {line}" for line in data.splitlines())]
    return "\n".join(lines) + "\n\n"


def still_alive(place: str) -> str:
    """No message: keeps the connection open, and moves on the place that the reader will send."""
    return f": still here\nid: {place}\n\n"


class _Body:
    """Django closes it with the response, also where nothing of it was read."""

    def __init__(self, follower: Follower, write: Callable[[Batch], str]) -> None:
        self._follower, self._write = follower, write

    async def __aiter__(self) -> AsyncIterator[bytes]:
        await sync_to_async(connections.close_all)()  # the request's own, which would stay open as long as the stream
        yield _COMES_AGAIN_AFTER
        async for batch in self._follower.batches():
            yield (self._write(batch) if batch.events else still_alive(batch.place)).encode()

    def close(self) -> None:
        """The reader is gone."""
        self._follower.close()
