"""Which numbers RFC 8785 carries exactly: read from text without loss, written as text that every reader keeps."""

from __future__ import annotations

import math
from decimal import Decimal, InvalidOperation

LARGEST_INTEGER = 2**53 - 1
TOO_LARGE = f"the number is beyond ±(2^53-1) = ±{LARGEST_INTEGER}, where JSON readers lose digits; send it as a string"

_LONGEST = 400  # characters; longer than any number that can be carried
_EXPONENT_FROM = 1e21  # from here on RFC 8785 writes an exponent, by which readers know a float (ECMA-262, 6.1.6.1.20)


def number_from(text: str) -> int | float:
    """The number that a JSON number text spells, exactly.

    Raises:
        ValueError: RFC 8785 cannot carry it; the message says why.
    """
    if len(text) > _LONGEST:
        raise ValueError(f"a number of {len(text)} characters cannot be carried exactly; send it as a string")
    try:
        exact = Decimal(text)
    except InvalidOperation:
        raise ValueError(f"the exponent of {text} is out of range; send it as a string") from None
    value: int | float = int(text) if text.lstrip("-").isdigit() else float(text)
    if problem := number_problem(value):
        raise ValueError(problem)
    if isinstance(value, float) and Decimal(repr(value)) != exact:
        raise ValueError(f"{text} cannot be carried exactly (it would become {value!r}); send it as a string")
    return value


def number_problem(value: int | float) -> str:
    """Why the number has no RFC 8785 text that every reader keeps exactly (RFC 7493, section 2.2); empty if it has."""
    if -LARGEST_INTEGER <= value <= LARGEST_INTEGER:
        return ""
    if isinstance(value, float) and not math.isfinite(value):
        return f"{value} is not a JSON value; send null, or a string" if math.isnan(value) else TOO_LARGE
    return "" if isinstance(value, float) and abs(value) >= _EXPONENT_FROM else TOO_LARGE
