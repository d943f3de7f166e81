"""Reading an answer: JSON pointers, conditions, and the facts that are kept."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import quote

from checkpoint.canonical import canonical
from checkpoint.errors import ValueNotCanonical
from checkpoint.outcomes import Facts
from checkpoint.planning.exact_numbers import number_from
from workers.tools.http_arguments import Condition, Contains, Equals, EqualsSent, Exists, HeaderIs, Pointer, StatusIs
from workers.tools.http_exchange import Answer

LARGEST_FACTS = 15 * 1024  # bytes of canonical JSON, a little under what evidence can hold
LONGEST_OPERATION_ID = 255
LONGEST_ETAG = 256

_INDEX = re.compile(r"0|[1-9][0-9]{0,8}")
_PLACEHOLDER = re.compile(r"\{(key|operation_id|facts\.[a-z][a-z0-9_]*)\}")

Values = Mapping[str, Any]
Redact = Callable[[Any], Any]


class Missing(Exception):
    """A placeholder has no value yet."""


class Nothing:
    """What is found where a pointer leads nowhere; equal to no JSON value."""


NOTHING = Nothing()


def document_of(answer: Answer) -> Any:
    """The answer's JSON value, or its text where it is not JSON.

    A number that cannot be carried exactly becomes a string of its digits.
    """
    if not answer.content:
        return NOTHING
    try:
        return json.loads(answer.content, parse_int=_number, parse_float=_number, parse_constant=_refuse)
    except (ValueError, RecursionError):
        return answer.content.decode("utf-8", errors="replace")


def at(document: Any, pointer: Pointer) -> Any:
    """The value at a JSON pointer (RFC 6901), or NOTHING."""
    for token in pointer.split("/")[1:]:
        document = _child(document, token.replace("~1", "/").replace("~0", "~"))
    return document


def filled(template: str, values: Values, *, quoted: bool = False) -> str:
    """The text with its placeholders replaced; `quoted` for use in a URL.

    Raises:
        Missing: a placeholder has no value.
    """

    def replacement(match: re.Match[str]) -> str:
        text = _plain(values.get(match[1]), match[1])
        return quote(text, safe="") if quoted else text

    return _PLACEHOLDER.sub(replacement, template)


def with_key(value: Any, key: str) -> Any:
    """A JSON value with `{key}` replaced in every string of it."""
    if isinstance(value, str):
        return value.replace("{key}", key)
    if isinstance(value, dict):
        return {name: with_key(member, key) for name, member in value.items()}
    return [with_key(item, key) for item in value] if isinstance(value, list) else value


def all_hold(conditions: list[Condition], answer: Answer, sent: Any, values: Values) -> bool:
    """Whether there are conditions and all of them hold; a status that no condition names must be 2xx."""
    if not conditions or not (answer.ok or any(isinstance(condition, StatusIs) for condition in conditions)):
        return False
    return not unmet(conditions, answer, sent, values)


def unmet(conditions: list[Condition], answer: Answer, sent: Any, values: Values) -> list[str]:
    """A few words for each condition that does not hold."""
    document = document_of(answer)
    return [_words(one) for one in conditions if not _holds(one, answer, document, sent, values)]


def same(left: Any, right: Any) -> bool:
    """Whether two JSON values are one: 1 and 1.0 are, 1 and true are not."""
    try:
        return canonical(left) == canonical(right)
    except ValueNotCanonical:
        return False


def facts_of(answer: Answer, keep: Mapping[str, Pointer], redact: Redact) -> Facts:
    """The status and the facts that are declared; what could not be kept is named in `not_kept` with the reason."""
    facts: Facts = {"status": answer.status, **({"replayed": True} if answer.replayed else {}), **_etag(answer, redact)}
    not_kept: dict[str, str] = {}
    document = document_of(answer)
    room = LARGEST_FACTS
    for name, pointer in keep.items():
        value = redact(at(document, pointer))
        if reason := _why_not(value, room):
            not_kept[name] = reason
        else:
            facts[name] = value
            room -= len(canonical(value).encode())
    return {**facts, **({"not_kept": not_kept} if not_kept else {})}


def _etag(answer: Answer, redact: Redact) -> Facts:
    """What a later step can give as `if_match`."""
    etag = redact(answer.headers.get("etag", ""))
    return {"etag": etag} if answer.provider.conditional and 0 < len(etag) <= LONGEST_ETAG else {}


def operation_id_of(answer: Answer, pointer: Pointer | None, redact: Redact) -> str | None:
    """The provider's own id of the effect, as text."""
    value = redact(at(document_of(answer), pointer)) if pointer is not None else None
    if isinstance(value, bool) or not isinstance(value, str | int) or _why_not(value, LONGEST_OPERATION_ID):
        return None
    return str(value) or None


def excerpt(answer: Answer, redact: Redact) -> str:
    """The beginning of the answer, for a person; secrets are taken out before it is cut."""
    text = " ".join(str(redact(answer.content.decode("utf-8", errors="replace"))).split())
    return text if len(text) <= 200 else text[:199] + "…"


def said(answer: Answer, redact: Redact) -> str:
    """Who answered with what, for a person."""
    quoted = excerpt(answer, redact)
    return f"{answer.provider.name} answered with status {answer.status}" + (f": {quoted}" if quoted else "")


def _child(document: Any, token: str) -> Any:
    if isinstance(document, dict):
        return document.get(token, NOTHING)
    if isinstance(document, list) and _INDEX.fullmatch(token) and int(token) < len(document):
        return document[int(token)]
    return NOTHING


def _holds(condition: Condition, answer: Answer, document: Any, sent: Any, values: Values) -> bool:
    match condition:
        case StatusIs():
            return answer.status == condition.status
        case HeaderIs():
            return answer.headers.get(condition.header.lower()) == filled(condition.equals, values)
        case Exists():
            return (at(document, condition.pointer) is not NOTHING) == condition.exists
        case Equals():
            return same(at(document, condition.pointer), _filled(condition.equals, values))
        case EqualsSent():
            return same(at(document, condition.pointer), at(sent, condition.equals_sent))
        case Contains():
            return _contains(at(document, condition.pointer), _filled(condition.contains, values))


def _contains(whole: Any, part: Any) -> bool:
    if isinstance(whole, str):
        return isinstance(part, str) and part in whole
    return isinstance(whole, list) and any(same(item, part) for item in whole)


def _filled(value: Any, values: Values) -> Any:
    return filled(value, values) if isinstance(value, str) else value


def _words(condition: Condition) -> str:
    match condition:
        case StatusIs():
            return f"the status is not {condition.status}"
        case HeaderIs():
            return f"the header {condition.header} has another value"
        case Exists():
            return f"{condition.pointer or 'the answer'} {'is missing' if condition.exists else 'is there'}"
        case Equals() | EqualsSent():
            return f"{condition.pointer or 'the answer'} has another value"
        case Contains():
            return f"{condition.pointer or 'the answer'} does not contain what is expected"


def _plain(value: Any, name: str) -> str:
    if isinstance(value, str) and value:
        return value
    if isinstance(value, int | float) and not isinstance(value, bool):
        return canonical(value)
    raise Missing(f"{{{name}}} has no value to fill in")


def _why_not(value: Any, room: int) -> str:
    if value is NOTHING:
        return "missing"
    try:
        size = len(canonical(value).encode())
    except ValueNotCanonical as error:
        return error.message
    return "" if size <= room else "too large"


def _number(text: str) -> Any:
    try:
        return number_from(text)
    except ValueError:
        return text


def _refuse(text: str) -> Any:
    raise ValueError(f"{text} is not JSON")
