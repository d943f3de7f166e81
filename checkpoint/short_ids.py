"""Ids as people type them: the whole UUID, or its last eight or more digits.

The end, since UUIDs of version 7 begin with the time: those of one minute begin alike.
"""

from __future__ import annotations

import re
from uuid import UUID

from django.db.models import F, Func, Model, QuerySet, TextField, Value
from django.db.models.functions import Cast, Replace

from checkpoint.errors import NotFound

SHORTEST = 8
_LENGTH = 32
_DIGITS = re.compile(r"[0-9a-f]+")


def short(id_: UUID) -> str:
    """The end by which people name a thing."""
    return id_.hex[-SHORTEST:]


def find[M: Model](things: QuerySet[M], text: str, *, noun: str) -> M:
    """The one thing of the queryset whose id is, or ends in, `text`.

    Raises:
        NotFound: there is none, there are several, or the text is no id; the message says which.
    """
    digits = text.strip().lower().replace("-", "")
    if not _DIGITS.fullmatch(digits) or not SHORTEST <= len(digits) <= _LENGTH:
        raise NotFound(
            f"{text[:60]!r} is no id of a {noun}: give the whole UUID, or its last {SHORTEST} or more digits."
        )
    if len(digits) == _LENGTH:
        found = list(things.filter(pk=UUID(digits)))
    else:
        ending = Func(_HEX, Value(len(digits)), function="right", output_field=TextField())
        found = list(things.alias(ending=ending).filter(ending=digits)[:2])
    if not found:
        raise NotFound(f"There is no {noun} {text}.")
    if len(found) > 1:
        raise NotFound(f"More than one {noun} ends in {text}; give more of the id.")
    return found[0]


_HEX = Replace(Cast(F("pk"), TextField()), Value("-"), Value(""))
