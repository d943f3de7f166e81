"""Speaks the API as a program would: a token in the header, JSON in and out, a new Idempotency-Key for every POST."""

from __future__ import annotations

import json
import uuid
from collections.abc import Collection
from datetime import timedelta
from typing import Any

from django.contrib.auth.models import User
from django.test import Client

from checkpoint.identity import tokens
from checkpoint.identity.accounts import By
from checkpoint.models import Scope
from checkpoint.people import Actor

ALL = tuple(Scope.values)
BY = By(Actor("root", "command"), None, "For a test.")


def token_of(account: User, scopes: Collection[str] = ALL, *, days: float = 1) -> str:
    """A new token of the account."""
    return tokens.issue(BY, account, name="tests", scopes=scopes, lifetime=timedelta(days=days))[1]


class Api:
    """A program with one token; None is one without."""

    def __init__(self, token: str | None) -> None:
        # An error that nobody foresaw is an answer too: a caller sees a problem, not a traceback.
        self.client = Client(raise_request_exception=False)
        self.headers = {"Authorization": f"Bearer {token}"} if token else {}

    @classmethod
    def of(cls, account: User, scopes: Collection[str] = ALL) -> Api:
        """With a new token of the account."""
        return cls(token_of(account, scopes))

    def get(self, address: str, **headers: str) -> Any:
        """Reads."""
        return self.client.get(_at(address), headers={**self.headers, **headers})

    def post(self, address: str, content: Any = None, *, key: str | None = None, **headers: str) -> Any:
        """Changes, under a new key where none is given; an empty key is none."""
        key = str(uuid.uuid4()) if key is None else key
        named = {"Idempotency-Key": key} if key else {}
        data = content if isinstance(content, bytes | str) else json.dumps(content if content is not None else {})
        sent = {**self.headers, **named, **headers}
        kind = sent.pop("Content-Type", "application/json")
        return self.client.post(_at(address), data, content_type=kind, headers=sent)

    def put(self, address: str, content: Any) -> Any:
        """Sets something to what is given; the same again is the same, so there is no key."""
        return self.client.put(_at(address), json.dumps(content), "application/json", headers=self.headers)


def _at(address: str) -> str:
    return address if address.startswith(("/api/", "http://")) else f"/api/v1/{address}"
