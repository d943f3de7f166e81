"""What a person must put into words, for every verb and channel: that it says something, and that it can be stored."""

from __future__ import annotations

import unicodedata

from checkpoint.canonical import string_problem
from checkpoint.explaining.hostile_text import without_hidden

_INVISIBLE = {"Cc", "Cf", "Zs", "Zl", "Zp"}


def says_something(text: str) -> bool:
    """Whether anything of the text is seen: blanks, controls, and characters that only steer others say nothing."""
    return any(unicodedata.category(character) not in _INVISIBLE for character in without_hidden(text))


def problem(text: str, *, wanted: str, limit: int) -> str:
    """What is wrong with a text that is demanded, as a sentence; empty where nothing is.

    Args:
        wanted: says what belongs there, for a text that says nothing.
        limit: in characters.
    """
    if found := string_problem(text):
        return f"{found}."
    if not says_something(text):
        return wanted
    return f"at most {limit} characters, this has {len(text)}." if len(text) > limit else ""
