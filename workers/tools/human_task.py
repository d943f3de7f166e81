"""`human.task`: asks a person to fill in a form; the answer is the step's receipt. The journal asks, not a worker."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Literal

from pydantic import Field
from pydantic.config import JsonDict

from checkpoint.contracts import Contract, RecoveryClass, Reversibility, Variant
from checkpoint.outcomes import Absent, Inspection, NotApplied, NotVisible, Receipt, Verification
from checkpoint.planning.answerable_forms import ANSWERABLE
from workers.registry import Call
from workers.tools.http_arguments import Model

MOST_FIELDS = 20
LONGEST_TEXT = 4000  # characters
LONGEST_INSTRUCTIONS = 1700  # characters; a case quotes 2000 of others, the title is among them
LONGEST_WAIT = 366 * 24 * 3600  # seconds

_LARGEST = 2**53 - 1
_NAME: JsonDict = {
    "propertyNames": {
        "pattern": r"^[a-z][a-z0-9_]{0,39}$(?!\n)",
        "x-must-be": "a field's name: a-z, then a-z, 0-9 and _, at most 40",
    }
}


def _absent_is_not_null(schema: dict[str, Any]) -> None:
    """What is left out has no value; JSON Schema would read a null where a number belongs as a fault of its own."""
    for name, member in schema.get("properties", {}).items():
        if "anyOf" in member:
            wanted = next(choice for choice in member["anyOf"] if choice.get("type") != "null")
            schema["properties"][name] = {"title": member.get("title", name), **wanted}


class _Described(Model):
    model_config = Model.model_config | {"json_schema_extra": _absent_is_not_null}

    title: Annotated[str, Field(min_length=1, max_length=100)] | None = None
    description: Annotated[str, Field(max_length=500)] | None = None


class Text(_Described):
    """A text; with more than 200 characters allowed, one of several lines."""

    type: Literal["string"]
    minLength: Annotated[int, Field(ge=0, le=LONGEST_TEXT)] | None = None  # noqa: N815 (JSON Schema's word)
    maxLength: Annotated[int, Field(ge=1, le=LONGEST_TEXT)]  # noqa: N815 (JSON Schema's word)


class Day(_Described):
    """A day, as 2026-12-01."""

    type: Literal["string"]
    format: Literal["date"]


class Choice(_Described):
    """One of several texts."""

    type: Literal["string"]
    enum: Annotated[
        list[Annotated[str, Field(min_length=1, max_length=200)]],
        Field(min_length=1, max_length=50, json_schema_extra={"uniqueItems": True}),
    ]


class Amount(_Described):
    """A number, or a whole one."""

    type: Literal["integer", "number"]
    minimum: Annotated[int, Field(ge=-_LARGEST, le=_LARGEST)] | None = None
    maximum: Annotated[int, Field(ge=-_LARGEST, le=_LARGEST)] | None = None


class YesOrNo(_Described):
    """Yes or no."""

    type: Literal["boolean"]


_KINDS = "one of: text {type: string, maxLength}, day {type: string, format: date}, choice {type: string, enum}, "
FormField = Annotated[
    Text | Day | Choice | Amount | YesOrNo,
    Field(json_schema_extra={"x-must-be": f"{_KINDS}number {{type: integer or number}}, {{type: boolean}}"}),
]


class Form(Model):
    """A subset of JSON Schema: an object of up to twenty fields, without patterns, references or nesting.

    One that nobody could answer is refused (checkpoint/planning/answerable_forms.py).
    """

    model_config = Model.model_config | {"json_schema_extra": {ANSWERABLE: True}}

    properties: Annotated[dict[str, FormField], Field(min_length=1, max_length=MOST_FIELDS, json_schema_extra=_NAME)]
    required: Annotated[list[Annotated[str, Field(max_length=40)]], Field(max_length=MOST_FIELDS)] = Field(default=[])


class TaskArguments(Model):
    """What a person is asked, and the form of the answer. People see all of it marked as the agent's words."""

    model_config = Model.model_config | {"json_schema_extra": _absent_is_not_null}

    title: Annotated[str, Field(min_length=1, max_length=200)]
    instructions: Annotated[str, Field(max_length=LONGEST_INSTRUCTIONS)] = ""
    form: Form
    answer_within_seconds: Annotated[int, Field(ge=60, le=LONGEST_WAIT)] | None = None


class HumanTask:
    """The contract says that a person makes the effect, so none of the calls below is ever made."""

    name = "human.task"
    version = "1"
    summary = "Asks a person to fill in a form"
    Arguments = TaskArguments

    def variants(self) -> Sequence[Variant]:
        """An answer is information: nothing has to be undone."""
        look = "Nowhere: this is a question to you, and nothing was sent anywhere."
        return [Variant("question", Contract(_READS, Reversibility.NONE_NEEDED, asks=True, where_to_look=look))]

    def execute(self, arguments: TaskArguments, call: Call) -> Receipt:
        """A worker of an older release may try: nothing happens."""
        raise NotApplied("only a person can answer this", code="asks_a_person", permanent=True)

    def inspect(self, arguments: TaskArguments, call: Call) -> Inspection:
        """The record has the answer, or there is none."""
        return Absent()

    def verify(self, arguments: TaskArguments, call: Call) -> Verification:
        """A person's word stands by itself."""
        return NotVisible("only a person can answer this")


_READS = RecoveryClass.READ_ONLY
