"""A letter as a Slack-compatible message or as a signed Standard Webhook, posted within a total deadline."""

from __future__ import annotations

import json
import ssl
from collections.abc import Iterable
from datetime import timedelta
from functools import lru_cache
from typing import Any

import httpcore
import httpx
from django.conf import settings

from approvals.notifying.letters import Letter
from approvals.notifying.notice_rules import ChannelFormat
from approvals.notifying.outbox import SEND_SECONDS, Delivered, NotDelivered, Taken, Webhook
from checkpoint.outcomes import NotApplied
from workers.notices.defanged import defanged, one_line
from workers.registry import Deadline
from workers.tools.http_network import Network
from workers.tools.secrets import Secrets
from workers.webhook_signing import signed_headers

ANSWER_READ = 2000  # bytes
GONE = 410

_HEADERS = {"Content-Type": "application/json", "User-Agent": "checkpoint", "Connection": "close"}


def send(letter: Letter, taken: Taken, to: Webhook) -> Delivered | NotDelivered:
    """Posts the letter once and follows no redirect: a redirect could lead where a channel may not."""
    try:
        content, headers = _form(letter, taken, to)
        return _post(to.url, content, headers)
    except NotApplied as refusal:
        return NotDelivered(Secrets().redact(str(refusal)))
    except Exception as error:
        # Whatever broke, the channel's address may be in its words, and holds a secret.
        words = f"{type(error).__name__}: {error}".replace(to.url, "[the channel's address]")
        return NotDelivered(Secrets().redact(words))


def slack(letter: Letter) -> dict[str, Any]:
    """A message for an incoming webhook of Slack, Mattermost, Rocket.Chat and their like.

    Words of others stand in a code block, where neither mentions nor links nor markup work.
    """
    lines = [*(f"{label}: {one_line(value)}" for label, value in letter.facts)]
    for label, words in letter.quotes:
        lines += ["", f"{label}:", defanged(words)]
    block = "\n".join(lines).replace("```", "'''").replace("`", "'")
    text = f"*{_escaped(letter.subject)}*\n{_escaped(letter.opening)}\n```\n{_escaped(block)}\n```\n"
    return {"text": f"{text}<{letter.link}|{letter.link_words}>", "unfurl_links": False, "unfurl_media": False}


def standard(letter: Letter) -> dict[str, Any]:
    """The payload of a Standard Webhook."""
    return {"type": letter.type, "timestamp": letter.at.isoformat(), "data": letter.data}


def _form(letter: Letter, taken: Taken, to: Webhook) -> tuple[bytes, dict[str, str]]:
    if to.format is ChannelFormat.SLACK:
        return json.dumps(slack(letter)).encode(), {}
    content = json.dumps(standard(letter)).encode()
    headers = signed_headers(
        Secrets().value(to.secret_name),
        message_id=f"notice_{letter.id}",
        timestamp=int(taken.at.timestamp()),
        content=content,
    )
    return content, headers


def _post(url: str, content: bytes, headers: dict[str, str]) -> Delivered | NotDelivered:
    where = httpx.URL(url)
    private = where.netloc.decode() in settings.CHECKPOINT_PRIVATE_WEBHOOK_HOSTS
    if where.scheme != "https" and not private:
        return NotDelivered("nothing was sent: the channel's address is not https", permanent=True)
    network = Network(Deadline.after(SEND_SECONDS), private=private)
    all_headers = {"Host": where.netloc.decode(), **_HEADERS, **headers}
    with (
        httpcore.ConnectionPool(ssl_context=_tls(), network_backend=network) as pool,
        pool.stream("POST", _origin_and_target(where), headers=list(all_headers.items()), content=content) as response,
    ):
        return _ending(response.status, response.headers, _beginning(response))


def _origin_and_target(where: httpx.URL) -> httpcore.URL:
    return httpcore.URL(scheme=where.raw_scheme, host=where.raw_host, port=where.port, target=where.raw_path)


def _beginning(response: httpcore.Response) -> str:
    content = bytearray()
    for chunk in response.iter_stream():
        content += chunk
        if len(content) >= ANSWER_READ:
            break
    return bytes(content[:ANSWER_READ]).decode(errors="replace")


def _ending(status: int, headers: Iterable[tuple[bytes, bytes]], words: str) -> Delivered | NotDelivered:
    said = f"HTTP {status}: {Secrets().redact(words)[:200]}".rstrip(": ")
    if 200 <= status < 300:
        return Delivered(said)
    wanted = {name.lower(): value for name, value in headers}.get(b"retry-after", b"")
    asked_for = timedelta(seconds=int(wanted[:6])) if wanted.isdigit() else timedelta(0)
    return NotDelivered(said, permanent=status == GONE, asked_for=asked_for)


def _escaped(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


@lru_cache(maxsize=1)
def _tls() -> ssl.SSLContext:
    return httpx.create_ssl_context()
