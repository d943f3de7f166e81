"""Lists that an operator writes as TOML: what tools may reach, and what each of it can be relied on for."""

from __future__ import annotations

import os
import tomllib
from pathlib import Path
from typing import Any

from django.conf import settings
from pydantic import BaseModel, TypeAdapter, ValidationError


class ListInvalid(Exception):
    """The operator's file cannot be used; the message names the file and the entry."""


def read[Entry: BaseModel](model: type[Entry], *, table: str, setting: str, default: str) -> list[Entry]:
    """The entries `[[table]]` of the file that the environment variable `setting` names, else of `default`.

    Raises:
        ListInvalid: the file is missing, is not TOML, an entry is wrong, or two have one name.
    """
    file = settings.BASE_DIR / (os.environ.get(setting) or default)
    content = _content(file, setting)
    if unknown := set(content) - {table}:
        raise ListInvalid(f"{file}: {sorted(unknown)} is unknown; every entry starts with [[{table}]]")
    given = content.get(table, [])
    entries = given if isinstance(given, list) else [given]
    return _unique(
        [_entry(model, one, f"{file}: [[{table}]] number {number}") for number, one in enumerate(entries, 1)]
    )


def _content(file: Path, setting: str) -> dict[str, Any]:
    try:
        with file.open("rb") as opened:
            return tomllib.load(opened)
    except (OSError, tomllib.TOMLDecodeError) as error:
        raise ListInvalid(f"{file} ({setting}): {error}") from error


def _entry[Entry: BaseModel](model: type[Entry], given: Any, place: str) -> Entry:
    try:
        return TypeAdapter(model).validate_python(given)
    except ValidationError as error:
        faults = "; ".join(f"{'.'.join(map(str, fault['loc']))}: {fault['msg']}" for fault in error.errors())
        raise ListInvalid(f"{place}: {faults}") from None


def _unique[Entry: BaseModel](entries: list[Entry]) -> list[Entry]:
    names = [getattr(entry, "name", "") for entry in entries]
    if doubled := sorted({name for name in names if names.count(name) > 1}):
        raise ListInvalid(f"more than one entry has the name {doubled[0]!r}")
    return entries
