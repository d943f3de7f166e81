"""What a foreign database returns, as JSON that keeps every digit."""

from __future__ import annotations

from typing import Any

from checkpoint.planning.exact_numbers import number_problem


def as_json(value: Any) -> Any:
    """The value as JSON: what JSON cannot carry exactly becomes its text (dates, decimals, large numbers, UUIDs)."""
    match value:
        case None | bool() | str():
            return value
        case int() | float():
            return str(value) if number_problem(value) else value
        case dict():
            return {str(name): as_json(member) for name, member in value.items()}
        case list() | tuple():
            return [as_json(item) for item in value]
        case bytes() | memoryview():
            return bytes(value).hex()
        case _:
            return str(value)
