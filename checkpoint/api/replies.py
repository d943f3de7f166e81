"""POST under an Idempotency-Key: carried out once, and answered the same however often it is sent (S50).

After the IETF draft on the Idempotency-Key header. Every POST needs one. What was refused is not kept: nothing was
changed, so the same key may come again.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from functools import wraps
from http import HTTPStatus
from typing import Any, Concatenate

from django.db import connection
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.utils.encoders import JSONEncoder

from checkpoint import kept_replies
from checkpoint.api.bodies import body_of
from checkpoint.api.problems import KeyMissing
from checkpoint.api.view import caller
from checkpoint.errors import ActionIncomplete
from checkpoint.kept_replies import Held, Reply

HEADER = "Idempotency-Key"
REPLAYED = "Idempotency-Replayed"
_LONGEST_KEY = 255

Keep = Callable[[Reply], None]
"""Called by the view once with its reply: inside the verb's transaction where the verb offers that, else after it."""


def once[V, **P](
    handler: Callable[Concatenate[V, Request, Keep, P], Reply],
) -> Callable[Concatenate[V, Request, P], Response]:
    """Marks a view's `post`: it gets `keep` and returns the reply that it kept."""

    @wraps(handler)
    def post(view: V, request: Request, /, *args: P.args, **kwargs: P.kwargs) -> Response:
        held = kept_replies.hold(account=caller(request), key=_key(request), fingerprint=_fingerprint(request))
        if isinstance(held, Reply):
            return _response(held, replayed=True)
        try:
            given = handler(view, request, _keeper(held), *args, **kwargs)
        except BaseException:  # its reply, if it kept one, is undone with its transaction
            kept_replies.let_go(held)
            raise
        if given.status == HTTPStatus.ACCEPTED:  # not done yet, and not kept: the same request is to come again
            kept_replies.let_go(held)
        return _response(given, replayed=False)

    return post


def reply(status: int, content: Any, *, location: str = "") -> Reply:
    """A reply with JSON content."""
    return Reply(status, json.dumps(content, cls=JSONEncoder, ensure_ascii=False), location)


def _keeper(held: Held) -> Keep:
    def keep(given: Reply) -> None:
        if connection.in_atomic_block:
            held.keep(given)
        else:
            kept_replies.keep(held, given)

    return keep


def _key(request: Request) -> str:
    key = request.headers.get(HEADER, "")
    if not key:
        raise KeyMissing(f"Send an {HEADER} header with every POST, for instance a UUID: then it is safe to repeat it.")
    if len(key) > _LONGEST_KEY or not key.isprintable():
        raise ActionIncomplete(HEADER, f"at most {_LONGEST_KEY} printable characters.")
    return key


def _fingerprint(request: Request) -> str:
    named = "\n".join((request.method or "", request.get_full_path(), request.content_type, body_of(request).sha256))
    return hashlib.sha256(named.encode("utf-8", "surrogateescape")).hexdigest()


def _response(kept: Reply, *, replayed: bool) -> Response:
    response = Response(json.loads(kept.body), status=kept.status)
    if kept.location:
        response["Location"] = kept.location
    if replayed:
        response[REPLAYED] = "true"
    return response
