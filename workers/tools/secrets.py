"""Secrets come from the environment by name, and never leave the tool in anything that is stored or shown."""

from __future__ import annotations

import base64
import binascii
import json
import os
from collections.abc import Iterable, Mapping
from typing import Any
from urllib.parse import quote, quote_plus

from checkpoint.outcomes import NotApplied

PREFIX = "CHECKPOINT_SECRET_"
SHORTEST = 8


class Secrets:
    """The secrets of this process's environment."""

    def __init__(self, environ: Mapping[str, str] = os.environ) -> None:
        self._environ = environ

    def value(self, name: str) -> str:
        """The secret that arguments call `name`, from CHECKPOINT_SECRET_<name>.

        Raises:
            NotApplied: it is not set, or cannot be used; the message never holds any part of it.
        """
        variable = PREFIX + name
        value = self._environ.get(variable, "")
        if not value:
            raise _unusable(f"{variable} is not set in the worker's environment")
        if len(value) < SHORTEST:
            raise _unusable(f"{variable} is shorter than {SHORTEST} characters and could not be kept out of the record")
        if not (value.isascii() and value.isprintable()):
            raise _unusable(f"{variable} holds characters that an HTTP header cannot carry; check for a line break")
        return value

    def redact(self, value: Any) -> Any:
        """The JSON value with every secret in it, in whatever spelling, replaced by its name."""
        return _replaced(value, list(self._spellings()))

    def _spellings(self) -> Iterable[tuple[str, str]]:
        """Every text that gives a secret away, the longest first, so that no rest of one is left."""
        pairs = [
            (spelling, f"[secret {variable.removeprefix(PREFIX)}]")
            for variable, value in self._environ.items()
            if variable.startswith(PREFIX)
            for part in _parts(value)
            for spelling in {part, quote(part, safe=""), quote_plus(part), *_in_json(part)}
        ]
        return sorted(pairs, key=lambda pair: -len(pair[0]))


def _unusable(message: str) -> NotApplied:
    return NotApplied(f"nothing was sent: {message}", code="secret_unusable", permanent=True)


def _parts(value: str) -> set[str]:
    """The value, and what a provider may quote of it: the token after "Bearer", the password inside "Basic"."""
    parts = {value, *value.split()}
    for word in value.split():
        decoded = _base64_text(word)
        parts |= {decoded, *decoded.split(":")}
    return {part for part in parts if len(part) >= SHORTEST}


def _in_json(part: str) -> set[str]:
    """As JSON writes it; some writers escape the slash too."""
    text = json.dumps(part)[1:-1]
    return {text, text.replace("/", "\\/")}


def _base64_text(word: str) -> str:
    try:
        return base64.b64decode(word, validate=True).decode()
    except (binascii.Error, UnicodeDecodeError):
        return ""


def _replaced(value: Any, spellings: list[tuple[str, str]]) -> Any:
    if isinstance(value, str):
        for spelling, name in spellings:
            value = value.replace(spelling, name)
        return value
    if isinstance(value, dict):
        return {_replaced(name, spellings): _replaced(member, spellings) for name, member in value.items()}
    if isinstance(value, list):
        return [_replaced(item, spellings) for item in value]
    return value
