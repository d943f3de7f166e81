"""What the management commands share: who acts, and errors as one clear line with an exit code."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from django.contrib.auth.models import User
from django.core.management.base import BaseCommand, CommandError
from django.db import OperationalError

from checkpoint import denials, occasions
from checkpoint.errors import CheckpointError, Forbidden, NotFound
from checkpoint.occasions import Occasion, login_name
from checkpoint.people import Actor

CHANNEL = "command"
FAILED = 1
INTERRUPTED = 130  # as shells say it: 128 and the number of SIGINT


class ClearCommand(BaseCommand):
    """A command that ends with one line where others would end with a traceback for things that happen to people."""

    def execute(self, *args: Any, **options: Any) -> str | None:
        """Runs the command as an occasion of its own, and records a refusal that no verb has recorded.

        Raises CommandError where the database is away or the person stopped it.
        """
        try:
            with occasions.begin(lambda: actor(None)) as occasion:
                return self._run(occasion, *args, **options)
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


def person(name: str) -> User:
    """The account of that name, which acts from here on. Raises CommandError where there is none that is active."""
    found = User.objects.filter(username=name, is_active=True).first()
    if found is None:
        refusal = Forbidden(f"There is no active user {name!r}; name one with --as USER.")
        raise CommandError(str(refusal)) from refusal
    occasions.current().actor = lambda: actor(found)
    return found


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
