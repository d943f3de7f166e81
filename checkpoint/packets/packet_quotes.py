"""What others wrote, as a resume packet carries it: quoted, cut to a length, nothing hidden in it.

Every text of an agent, a tool, a provider or a person stands in a member “quoted”, and no other member holds any. So
whoever reads a packet, and whoever checks one, can tell what is a record from what somebody said.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import Any

from checkpoint.contracts import EVERY_FACT
from checkpoint.explaining.hostile_text import plain

LONGEST_FACT = 200  # characters
LONGEST_WORDS = 500  # characters
MOST_FACTS = 20
QUOTED = "quoted"

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_.-]{0,63}")


def quoted(text: str, longest: int) -> dict[str, Any]:
    """The text, or its beginning and how many characters it has; what cannot be seen in it as its code points."""
    shown = plain(text[:longest])
    return {QUOTED: shown} if len(text) <= longest else {QUOTED: shown, "characters": len(text)}


def facts(found: Mapping[str, Any], declared: Collection[str]) -> dict[str, Any]:
    """Those of a receipt's facts that the tool declares: numbers as they are, texts quoted; nothing nested.

    How many others there are is in `facts_kept_back`: who wants them reads the evidence, as what it is.
    """
    named = sorted(found) if EVERY_FACT in declared else declared
    plain_ones = [name for name in named if _NAME.fullmatch(name) and not isinstance(found.get(name, []), list | dict)]
    shown = {name: _fact(found[name]) for name in plain_ones[:MOST_FACTS]}
    kept_back = len(found) - len(shown)
    return ({"facts": shown} if shown else {}) | ({"facts_kept_back": kept_back} if kept_back else {})


def _fact(value: Any) -> Any:
    return quoted(value, LONGEST_FACT) if isinstance(value, str) else value
