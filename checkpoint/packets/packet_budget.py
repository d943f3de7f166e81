"""What of a resume packet fits into its budget: what must be there first, then pieces in their order. Plain Python."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from checkpoint.canonical import canonical
from checkpoint.errors import BudgetTooSmall

Measure = Callable[[str], int]

LEFT_OUT = "left_out"
_COMMA = 1  # in bytes; a token at most
_LARGEST_COUNT = 999_999


@dataclass(frozen=True)
class Piece:
    """Something that is wanted if there is room.

    Attributes:
        section: name of the list that it goes into.
        into: index of an entry of that list, of which it is a further part; None for an entry of its own.
    """

    section: str
    value: dict[str, Any]
    into: int | None = None


def fit(kept: Mapping[str, Any], pieces: Iterable[Piece], *, budget: int, measure: Measure) -> dict[str, Any]:
    """The packet: all that is kept, the pieces that fit, earlier ones first, and how many of each section did not.

    Args:
        kept: with a list for each section that pieces go into.
        budget: of the canonical text, in what `measure` counts.

    Raises:
        BudgetTooSmall: what must be there does not fit; it says how much that takes.
    """
    found = list(pieces)
    packet = {**kept, LEFT_OUT: dict.fromkeys({piece.section for piece in found}, _LARGEST_COUNT)}
    used = measure(canonical(packet))
    if used > budget:
        raise BudgetTooSmall(used)
    taken: list[Piece] = []
    for piece in found:
        cost = measure(canonical(piece.value)) + _COMMA
        if used + cost <= budget:
            used += cost
            taken.append(piece)
    whole = _built(kept, taken, found)
    while measure(canonical(whole)) > budget:  # tokens do not add up exactly
        taken.pop()
        whole = _built(kept, taken, found)
    return whole


def _built(kept: Mapping[str, Any], taken: list[Piece], found: list[Piece]) -> dict[str, Any]:
    packet: dict[str, Any] = {name: list(each) if isinstance(each, list) else each for name, each in kept.items()}
    for piece in taken:
        section = packet[piece.section]
        if piece.into is None:
            section.append(piece.value)
        else:
            section[piece.into] = {**section[piece.into], **piece.value}
    missing = Counter(piece.section for piece in found) - Counter(piece.section for piece in taken)
    return packet | {LEFT_OUT: dict(missing)}
