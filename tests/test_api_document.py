"""The OpenAPI document: whole, valid, and true of every address."""

from __future__ import annotations

from typing import Any

import pytest
from drf_spectacular import generators, validation

from tests.api_driver import Api

pytestmark = pytest.mark.usefixtures("database")


def written_down() -> dict[str, Any]:
    """The document, made here."""
    generator = generators.SchemaGenerator()  # type: ignore[no-untyped-call]  # the library has no types here
    document: dict[str, Any] = generator.get_schema(request=None, public=True)  # type: ignore[no-untyped-call]  # as above
    return document


def test_it_is_valid_openapi_31_and_is_there_for_everybody() -> None:
    answered = Api(None).get("openapi.json")
    assert answered.status_code == 200
    document = answered.json()
    assert document["openapi"].startswith("3.1")
    validation.validate_schema(document)  # type: ignore[no-untyped-call]  # the library has no types here


def test_every_operation_says_which_problems_it_answers_with() -> None:
    document = written_down()
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            answers = operation["responses"]
            assert {"401", "403", "404"} <= set(answers), (path, method)
            assert "application/problem+json" in answers["404"]["content"], (path, method)
            assert operation["operationId"], (path, method)


def test_every_post_demands_an_idempotency_key() -> None:
    document = written_down()
    posts = [operations["post"] for operations in document["paths"].values() if "post" in operations]
    assert posts
    for post in posts:
        assert any(each["name"] == "Idempotency-Key" and each["required"] for each in post["parameters"])
