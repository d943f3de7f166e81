"""Words that every message about bad input uses: what is there, and what may have been meant."""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterable
from typing import Any

_SHOWN = 60  # characters
_COMPARED = 200


def described(value: Any) -> str:
    """What is there: the kind of value, and the value itself where it is short."""
    if value is None or isinstance(value, bool):
        return json.dumps(value)
    if isinstance(value, dict | list):
        return "an object" if isinstance(value, dict) else "an array"
    kind = "the string" if isinstance(value, str) else "the number"
    text = json.dumps(value, ensure_ascii=False)
    return f"{kind} {text}" if len(text) <= _SHOWN else f"{kind} {text[: _SHOWN - 1]}…"


def nearest(name: str, known: Iterable[str]) -> str:
    """A hint for a misspelt name, `; did you mean "amount"?`, or nothing."""
    close = difflib.get_close_matches(name[:_COMPARED], list(known), n=3, cutoff=0.6)
    return f"; did you mean {' or '.join(json.dumps(word) for word in close)}?" if close else ""
