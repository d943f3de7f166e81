"""The HTTP side: one thread a connection, loopback only."""

from __future__ import annotations

import json
import select
import socket
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from workers.sandbox.page import ledger_page
from workers.sandbox.providers import problem
from workers.sandbox.service import Request, Service

MAX_BODY_BYTES = 10 * 1024 * 1024


class SandboxServer(ThreadingHTTPServer):
    """Serves one `Service`."""

    daemon_threads = True
    request_queue_size = 256

    def __init__(self, port: int, service: Service) -> None:
        super().__init__(("127.0.0.1", port), Handler)
        self.service = service

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Says nothing about connections that broke: callers here are killed on purpose."""
        if not isinstance(sys.exception(), OSError):
            super().handle_error(request, client_address)


class Handler(BaseHTTPRequestHandler):
    """Reads a request, asks the service, writes the answer."""

    server: SandboxServer
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = -1
    timeout = 60

    def do_GET(self) -> None:
        """Reads; `/` is the page for people."""
        parts = urlsplit(self.path)
        if parts.path == "/":
            find = dict(parse_qsl(parts.query)).get("find", "")
            self._send(
                200, ledger_page(self.server.service.ledger.effects(), find).encode(), "text/html; charset=utf-8"
            )
        else:
            self._serve({})

    def do_POST(self) -> None:
        """Effects and the switch."""
        length = int(self.headers.get("Content-Length") or 0)
        if length > MAX_BODY_BYTES:
            self.close_connection = True
            self._send_json(problem(413, "the body is too large").body, 413, {})
        else:
            self._serve(_read(self.rfile.read(length), self.headers.get("Content-Type") or ""))

    def do_PUT(self) -> None:
        """Effects that name their own place."""
        self.do_POST()

    def log_message(self, format: str, *args: Any) -> None:
        """Quiet: the ledger says what happened."""

    def _serve(self, body: Any) -> None:
        parts = urlsplit(self.path)
        answer = self.server.service.answer(
            Request(
                method=self.command,
                path=parts.path,
                query=dict(parse_qsl(parts.query)),
                key=self.headers.get("Idempotency-Key"),
                body=body,
                if_match=self.headers.get("If-Match"),
                if_none_match=self.headers.get("If-None-Match"),
                gone=self._gone,
            )
        )
        if answer is None:
            self.close_connection = True
        else:
            self._send_json(answer.body, answer.status, answer.headers)

    def _gone(self) -> bool:
        readable, _, _ = select.select([self.connection], [], [], 0)
        return bool(readable) and self.connection.recv(1, socket.MSG_PEEK) == b""

    def _send_json(self, body: Any, status: int, headers: dict[str, str]) -> None:
        self._send(status, json.dumps(body).encode(), "application/json", headers)

    def _send(self, status: int, content: bytes, media_type: str, headers: dict[str, str] | None = None) -> None:
        self.send_response(status)
        for name, value in {"Content-Type": media_type, "Content-Length": str(len(content)), **(headers or {})}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(content)
        self.wfile.flush()


def _read(content: bytes, media_type: str) -> Any:
    if media_type.startswith("application/x-www-form-urlencoded"):
        return _form(content)
    try:
        return json.loads(content)
    except ValueError:
        return None


def _form(content: bytes) -> dict[str, Any]:
    """Every value is text; `a[b]` is the member b of a, as providers with form bodies have it."""
    body: dict[str, Any] = {}
    for name, value in parse_qsl(content.decode(errors="replace"), keep_blank_values=True):
        outer, bracket, inner = name.removesuffix("]").partition("[")
        if bracket and isinstance(body.setdefault(outer, {}), dict):
            body[outer][inner] = value
        else:
            body[name] = value
    return body
