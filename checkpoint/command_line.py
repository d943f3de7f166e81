"""What the management commands share: who acts, and errors as one clear line with an exit code."""

from __future__ import annotations

import os
import sys
from argparse import ArgumentTypeError
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import datetime
from getpass import getpass
from typing import Any

from django.contrib.auth.models import User
from django.core.management.base import BaseCommand, CommandError
from django.db import OperationalError

from checkpoint import occasions
from checkpoint.canonical import string_problem
from checkpoint.errors import CheckpointError, Forbidden, NotFound
from checkpoint.identity import authentications
from checkpoint.occasions import Occasion, login_name
from checkpoint.people import Actor
from checkpoint.trail import denials

CHANNEL = "command"
FAILED = 1
MISUSED = 2
INTERRUPTED = 130  # as shells say it: 128 and the number of SIGINT
CUT_OFF = 141  # and of SIGPIPE


class ClearCommand(BaseCommand):
    """A command that ends with one line where others would end with a traceback for things that happen to people."""

    def execute(self, *args: Any, **options: Any) -> str | None:
        """Runs the command as an occasion of its own, and records a refusal that no verb has recorded.

        Raises CommandError where an argument is not UTF-8, the database is away or the person stopped it.
        """
        _require_text(options)
        try:
            with occasions.begin(lambda: actor(None)) as occasion:
                answer = self._run(occasion, *args, **options)
            self.stdout.flush()
            return answer
        except BrokenPipeError:
            # Nobody reads on (`| head`). What is left goes nowhere, so that closing the stream does not fail again.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            sys.exit(CUT_OFF)
        except OperationalError as error:
            reason = str(error).strip().splitlines()[0]
            raise CommandError(f"The database does not answer ({reason}). Is `make up` running?") from error
        except KeyboardInterrupt:
            raise CommandError("Stopped by you.", returncode=INTERRUPTED) from None

    def _run(self, occasion: Occasion, *args: Any, **options: Any) -> str | None:
        machine_user = occasion.actor
        try:
            return super().execute(*args, **options)
        except CommandError as error:
            # Without an account nothing is hidden: what is not found then does not exist.
            hidden = isinstance(error.__cause__, NotFound) and occasion.actor is not machine_user
            if (hidden or isinstance(error.__cause__, Forbidden)) and not occasion.denied:
                name = type(self).__module__.rpartition(".")[2]
                denials.record(actor=occasion.actor(), verb=name, subject=f"command {name}", reason=str(error))
            raise


def _require_text(options: dict[str, Any]) -> None:
    """Python hands on bytes of an argument that are not UTF-8 as half surrogates, which nothing can store or print."""
    for name, given in options.items():
        for text in given if isinstance(given, list | tuple) else [given]:
            if isinstance(text, str) and string_problem(text):
                raise CommandError(f"{name}: this is not UTF-8; nothing was done.", returncode=MISUSED)


def seconds(text: str) -> float:
    """An argument that says how long; infinity is for ever."""
    with suppress(ValueError):
        if (given := float(text)) >= 0:
            return given
    raise ArgumentTypeError(f"{text!r} is no number of seconds from 0 on")


def person(name: str) -> User:
    """The account of that name, which acts from here on. Raises CommandError where there is none that is active."""
    found = User.objects.filter(username=name, is_active=True).first()
    if found is None:
        refusal = Forbidden(f"There is no active user {name!r}; name one with --as USER.")
        raise CommandError(str(refusal)) from refusal
    occasions.current().actor = lambda: actor(found)
    return found


def authenticate(person: User, *, ask: bool) -> datetime | None:
    """Asks for the account's password at a terminal; when it was given, or None where nobody can be asked.

    Raises CommandError where the password is wrong.
    """
    if not ask or not sys.stdin.isatty():
        return None
    given = authentications.check(person, getpass(f"Password of {person.get_username()}: "), channel=CHANNEL)
    if given is None:
        raise CommandError("This is not the password of an active account of that name; nothing was done.")
    return given


def actor(user: User | None) -> Actor:
    """Who acts: the account, or else whoever typed the command on this machine."""
    return Actor(name=user.get_username() if user else login_name(), channel=CHANNEL)


@contextmanager
def clear_errors(code: int = FAILED, *, only: type[CheckpointError] = CheckpointError) -> Iterator[None]:
    """Turns our errors into one line on stderr and an exit code."""
    try:
        yield
    except only as error:
        raise CommandError(str(error), returncode=code) from error


def printable(text: str) -> str:
    """The text for a terminal: what would steer it, or hide or turn other text around, is written as its code."""
    return "".join(
        character if character.isprintable() else f"<U+{ord(character):04X}>" for character in text.replace("\n", " ")
    )
