"""Parts of an answer that are made one after the other, for ASGI."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

from asgiref.sync import sync_to_async


async def streamed[Part: (str, bytes)](parts: Iterator[Part]) -> AsyncIterator[Part]:
    """Django would read the whole of an ordinary iterator into memory before it sends the first byte."""
    read = sync_to_async(lambda: next(parts, None))
    while (part := await read()) is not None:
        yield part
