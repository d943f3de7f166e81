"""On which occasion something happens: who acts, by which channel, in answer to which request, and why.

An edge (the HTTP middleware, a command, a worker's run) begins an occasion, and every audit entry written meanwhile
carries its request id. What is written without an occasion, in a Python shell for instance, names the login name.
"""

from __future__ import annotations

import getpass
import re
import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

from checkpoint.people import Actor

SHELL_CHANNEL = "shell"
_ACCEPTABLE = re.compile(r"[A-Za-z0-9._:-]{1,64}", re.ASCII)


@dataclass
class Occasion:
    """One request, command or run.

    Attributes:
        request_id: by which its entries, and a caller's own log, are found together.
        actor: who acts; asked late, because a request's account is known only after authentication.
        reason: why, in the actor's words, where the change itself has no place for it.
        refusal: what a refused person was told.
        trace: the caller's W3C traceparent, by which its own trace is found; the caller's word, no proof.
        denied: a refusal of this occasion is in the audit already.
    """

    request_id: str
    actor: Callable[[], Actor]
    reason: str = ""
    refusal: str = ""
    trace: str = ""
    denied: bool = False


_TRACE = re.compile(r"00-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}", re.ASCII)
_current: ContextVar[Occasion | None] = ContextVar("occasion", default=None)


@contextmanager
def begin(actor: Callable[[], Actor], *, request_id: str = "", trace: str = "") -> Iterator[Occasion]:
    """An occasion for as long as the block runs, under the request id given or a new one."""
    occasion = Occasion(request_id or new_id(), actor, trace=trace)
    token = _current.set(occasion)
    try:
        yield occasion
    finally:
        _current.reset(token)


@contextmanager
def acting(actor: Actor, *, reason: str) -> Iterator[None]:
    """Names who changes something and why, where the change itself has no place for it. The request id stays."""
    occasion = current()
    before = occasion.actor, occasion.reason
    occasion.actor, occasion.reason = lambda: actor, reason
    token = _current.set(occasion)
    try:
        yield
    finally:
        _current.reset(token)
        occasion.actor, occasion.reason = before


def current() -> Occasion:
    """The occasion that is going on; outside of any, one of whoever is logged in on this machine, without an id."""
    return _current.get() or Occasion("", lambda: Actor(login_name(), SHELL_CHANNEL))


def request_id() -> str:
    """The present occasion's; empty where there is none."""
    occasion = _current.get()
    return occasion.request_id if occasion else ""


def trace() -> str:
    """The present occasion's traceparent; empty where there is none."""
    occasion = _current.get()
    return occasion.trace if occasion else ""


def accepted_trace(text: str) -> str:
    """The traceparent where it is one (W3C Trace Context, version 00, 3.2); else nothing."""
    return text if _TRACE.fullmatch(text) else ""


def new_id() -> str:
    """A request id of our own."""
    return secrets.token_hex(8)


def accepted_id(text: str) -> str:
    """The caller's request id where it is short and harmless, else a new one. It is the caller's word, no proof."""
    return text if _ACCEPTABLE.fullmatch(text) else new_id()


def login_name() -> str:
    """The name under which the operating system knows whoever started this process."""
    try:
        return getpass.getuser()
    except OSError:  # a user id without a name, as in some containers
        return "unknown"
