"""Fills in the defaults that a JSON Schema declares, so that `{}` and `{"active": false}` are one intent (S51)."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

from checkpoint.canonical import DEEPEST

Schema = Any  # a dict, or true or false
_DEFS = "#/$defs/"


class Defaults:
    """The defaults of one schema. Only for values that the schema accepts.

    Of several alternatives (anyOf, oneOf) the one that the discriminator names is filled in, or the only one that
    accepts the value; where several do, the value stays as it is.
    """

    def __init__(self, schema: Schema, is_valid: Callable[[Schema, Any], bool]) -> None:
        self._schema = schema
        self._is_valid = is_valid

    def fill(self, value: Any) -> Any:
        """A copy of the value with the defaults in it.

        Raises:
            RecursionError: the schema's defaults contain themselves without end.
        """
        return self._fill(self._schema, value, 0)

    def _fill(self, schema: Schema, value: Any, depth: int) -> Any:
        if not isinstance(schema, dict) or not isinstance(value, dict | list):
            return value
        if depth > 2 * DEEPEST:
            raise RecursionError("the schema's defaults contain themselves without end")
        for part in self._parts(schema, value):
            value = self._fill(part, value, depth + 1)
        return self._object(schema, value, depth) if isinstance(value, dict) else self._array(schema, value, depth)

    def _parts(self, schema: dict[str, Any], value: Any) -> list[Schema]:
        """The other schemas that speak about the same value."""
        parts = [*schema.get("allOf", [])]
        if "$ref" in schema:
            parts.append(self._target(schema["$ref"]))
        for keyword in ("anyOf", "oneOf"):
            if keyword in schema:
                parts += self._alternative(schema, schema[keyword], value)
        return parts

    def _target(self, reference: str) -> Schema:
        return self._schema["$defs"][reference.removeprefix(_DEFS)]

    def _alternative(self, schema: dict[str, Any], branches: list[Schema], value: Any) -> list[Schema]:
        discriminator = schema.get("discriminator")
        if discriminator and isinstance(value, dict):
            target = discriminator.get("mapping", {}).get(value.get(discriminator["propertyName"]))
            return [self._target(target)] if target else []
        accepting = [branch for branch in branches if self._is_valid(branch, value)]
        return accepting if len(accepting) == 1 else []

    def _object(self, schema: dict[str, Any], value: dict[str, Any], depth: int) -> dict[str, Any]:
        properties, others = schema.get("properties", {}), schema.get("additionalProperties")
        filled = {name: self._fill(properties.get(name, others), member, depth + 1) for name, member in value.items()}
        for name, property_schema in properties.items():
            if name not in filled and isinstance(property_schema, dict) and "default" in property_schema:
                default = copy.deepcopy(property_schema["default"])
                filled[name] = self._fill(property_schema, default, depth + 1)
        return filled

    def _array(self, schema: dict[str, Any], value: list[Any], depth: int) -> list[Any]:
        first = schema.get("prefixItems", [])
        others = [schema.get("items")] * max(0, len(value) - len(first))
        pairs = zip([*first, *others], value, strict=False)
        return [self._fill(item_schema, item, depth + 1) for item_schema, item in pairs]
