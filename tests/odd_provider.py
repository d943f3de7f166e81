"""A foreign HTTP server that does what providers do on bad days. Tests script it; the sandbox stays well-behaved."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Received:
    """A request as it arrived."""

    method: str
    target: str
    headers: dict[str, str]
    body: bytes


Script = Callable[[Received, socket.socket], None]


def answer(status: int, body: Any = None, **headers: str) -> Script:
    """A script that answers with JSON (or with bytes as they are)."""
    content = body if isinstance(body, bytes) else json.dumps(body).encode()

    def run(_: Received, connection: socket.socket) -> None:
        connection.sendall(head(status, len(content), **headers) + content)

    return run


def head(status: int, length: int, **headers: str) -> bytes:
    """The head of an answer; underscores in header names stand for dashes."""
    lines = [f"HTTP/1.1 {status} Odd", f"Content-Length: {length}"]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")


@dataclass
class OddProvider:
    """Serves each path with a script of its own; `received` is everything that arrived."""

    scripts: dict[str, Script] = field(default_factory=dict)
    received: list[Received] = field(default_factory=list)

    def __enter__(self) -> OddProvider:
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.host = f"127.0.0.1:{self._socket.getsockname()[1]}"
        self.url = f"http://{self.host}"
        self.connections = 0
        self._accepting = threading.Thread(target=self._accept, daemon=True)
        self._accepting.start()
        return self

    def __exit__(self, *_: object) -> None:
        # Closing alone would leave the thread that is in accept() listening.
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()
        self._accepting.join()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._socket.accept()
            except OSError:
                return
            self.connections += 1
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        with connection:
            try:
                request = _read(connection)
                self.received.append(request)
                self.scripts[request.target.partition("?")[0]](request, connection)
            except OSError:
                return


def _read(connection: socket.socket) -> Received:
    data = b""
    while b"\r\n\r\n" not in data:
        chunk = connection.recv(65536)
        if not chunk:
            raise ConnectionError("closed before a whole request came")
        data += chunk
    first, *lines = data.partition(b"\r\n\r\n")[0].decode("latin-1").split("\r\n")
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    body = data.partition(b"\r\n\r\n")[2]
    while len(body) < int(headers.get("content-length", "0")):
        body += connection.recv(65536)
    method, target, _ = first.split(" ")
    return Received(method, target, headers, body)
