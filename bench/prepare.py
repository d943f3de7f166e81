"""Publishes the benchmark's tool, and prints the token of a new account that may submit."""

from __future__ import annotations

from datetime import timedelta

import django

django.setup()

from bench.noop import Noop  # noqa: E402
from checkpoint.identity import tokens  # noqa: E402
from checkpoint.identity.accounts import Access, By, create_account  # noqa: E402
from checkpoint.models import Scope  # noqa: E402
from checkpoint.people import Actor  # noqa: E402
from workers import publishing  # noqa: E402


def main() -> None:
    """One transaction each, through the product's own verbs."""
    publishing.publish([Noop()])
    by = By(Actor("bench", "command"), None, "Measure.")
    access = Access(active=True, groups=frozenset({"Agent"}), teams=frozenset({"default"}))
    account, _ = create_account(by, "load", access)
    token = tokens.issue(by, account, name="load", scopes=[Scope.READ, Scope.SUBMIT], lifetime=timedelta(days=1))[1]
    print(token)


if __name__ == "__main__":
    main()
