"""The arguments of `http.request`. Everything that can be said in JSON Schema is said there: submission checks that."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, JsonValue

from workers.call_artifacts import ArtifactReference

READS = ("GET", "HEAD")

# "$" alone also matches before a line break at the end.
_END = r"$(?!\n)"
_HOST = r"(?:[a-z0-9](?:[a-z0-9.-]*[a-z0-9])?|\[[0-9a-f:.]+\])(?::[1-9][0-9]{0,4})?"
# RFC 3986 characters as they are sent, after the first "/". No "#", and nothing that would be normalised on the way:
# the allow-list compares texts, so one place must have one spelling.
_TARGET = r"[A-Za-z0-9._~:/?@!$&'()*+,;=%\[\]-]"
_NO_DOT_SEGMENT = r"(?!.*(?:/|%2[fF])(?:\.|%2[eE]){1,2}(?:[/?]|%2[fF]|$))"
URL = rf"^{_NO_DOT_SEGMENT}https?://{_HOST}/{_TARGET}*{_END}"


def _template(placeholders: str) -> str:
    return rf"^{_NO_DOT_SEGMENT}https?://{_HOST}/(?:{_TARGET}|\{{(?:{placeholders})\}})*{_END}"


_NOT_PLAIN = (
    "authorization|proxy-.*|cookie|.*(?:token|secret|password|api-?key).*|idempotency-key|host|content-length|"
    "transfer-encoding|connection|keep-alive|upgrade|te|trailer|expect|accept-encoding"
)
_HEADER_NAME = r"[!#$%&'*+.^_`|~0-9A-Za-z-]{1,64}"
_PLAIN_HEADER = rf"^(?!(?i:{_NOT_PLAIN})$){_HEADER_NAME}{_END}"
_SECRET_HEADER = rf"^(?!(?i:host|content-length|transfer-encoding|connection|idempotency-key)$){_HEADER_NAME}{_END}"
_POINTER = rf"^(?:/(?:[^~/]|~[01])*)*{_END}"
_FACT = rf"^(?!(?:status|replayed|not_kept|differing)$)[a-z][a-z0-9_]{{0,63}}{_END}"


def _text(pattern: str, longest: int, must_be: str) -> Any:
    return Field(pattern=pattern, max_length=longest, json_schema_extra={"x-must-be": must_be})


def _names(pattern: str, largest: int, must_be: str) -> Any:
    """Bounds on an object's member names, in the words of JSON Schema."""
    return Field(max_length=largest, json_schema_extra={"propertyNames": {"pattern": pattern, "x-must-be": must_be}})


def _url(*placeholders: str) -> Any:
    must_be = (
        'an address like "https://api.example/v1/orders?x=1": the host in small letters, a path, no user name, no "..",'
        f' no "#", other characters percent-encoded; placeholders: {", ".join(f"{{{name}}}" for name in placeholders)}'
    )
    pattern = "|".join(name.replace(".", r"\.").replace("<name>", "[a-z][a-z0-9_]*") for name in placeholders)
    return _text(_template(pattern), 2048, must_be)


# A weak one (W/"…") never matches in If-Match (RFC 9110 section 13.1.1), and "*" matches whatever is there.
_ETAG = rf'^"[\x21\x23-\x7e]*"{_END}'
_ETAG_WORDS = 'a strong ETag as the provider sent it, in its quotes: "\\"33a64df5\\""'
_POINTER_WORDS = 'a JSON pointer: "/member/0", with ~0 for "~" and ~1 for "/"'
_PLAIN_WORDS = "a header's name, and none that the tool sets itself; credentials belong into secret_headers"
_SECRET_WORDS = "a header's name, and none that the tool sets itself"
_FACT_WORDS = "a fact's name: a-z, then a-z, 0-9 and _; status, replayed, not_kept and differing are taken"

Pointer = Annotated[str, _text(_POINTER, 256, _POINTER_WORDS)]
HeaderValue = Annotated[str, _text(rf"^[\x20-\x7e]*{_END}", 1024, "printable ASCII on one line")]
SecretName = Annotated[str, _text(rf"^[A-Z][A-Z0-9_]*{_END}", 64, "a secret's name: A-Z, then A-Z, 0-9 and _")]
Headers = Annotated[dict[str, HeaderValue], _names(_PLAIN_HEADER, 32, _PLAIN_WORDS)]
SecretHeaders = Annotated[dict[str, SecretName], _names(_SECRET_HEADER, 8, _SECRET_WORDS)]
Keep = Annotated[dict[str, Pointer], _names(_FACT, 32, _FACT_WORDS)]


class Model(BaseModel):
    """Nothing unknown, nothing coerced, nothing changed later."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, allow_inf_nan=False, regex_engine="python-re")


class StatusIs(Model):
    """The answer has this status. Without such a condition a list holds for 2xx answers only."""

    status: Annotated[int, Field(ge=200, le=599)]


class HeaderIs(Model):
    """The answer has this header with exactly this value: an ETag, for instance. Placeholders are filled in."""

    header: Annotated[str, _text(rf"^{_HEADER_NAME}{_END}", 64, "a header's name")]
    equals: Annotated[str, _text(rf"^[\x20-\x7e]*{_END}", 1024, "printable ASCII on one line")]


class Exists(Model):
    """The answer has a value there, or has none."""

    pointer: Pointer
    exists: bool


class Equals(Model):
    """The value there is this one. Placeholders in a string are filled in."""

    pointer: Pointer
    equals: JsonValue


class Contains(Model):
    """The text there contains this text, or the list there contains this value. Placeholders are filled in."""

    pointer: Pointer
    contains: JsonValue


class EqualsSent(Model):
    """The value there is the one that was sent, at another pointer into the request's own body."""

    pointer: Pointer
    equals_sent: Pointer


_FORMS = (
    "{status}, {header, equals}, {pointer, exists}, {pointer, equals}, {pointer, contains} or {pointer, equals_sent}"
)

Condition = Annotated[
    StatusIs | HeaderIs | Exists | Equals | Contains | EqualsSent,
    Field(json_schema_extra={"x-must-be": f"a condition of one form: {_FORMS}"}),
]
Conditions = Annotated[list[Condition], Field(max_length=16)]
SomeConditions = Annotated[list[Condition], Field(min_length=1, max_length=16)]


class Reading(Model):
    """A GET request by which the outside world is asked."""

    headers: Headers = {}
    secret_headers: SecretHeaders = {}
    keep: Keep = {}


class Lookup(Reading):
    """Finds the effect again by key, or by operation id once one is recorded.

    Of `found`, `absent` and `pending` the one counts whose conditions all hold. None or several: it cannot tell.
    `compare` maps pointers into the sent body to pointers into the answer; what differs there is an effect that was
    made with other arguments.
    """

    url: Annotated[str, _url("key", "operation_id")]
    found: SomeConditions
    absent: Conditions = []
    pending: Conditions = []
    operation_id: Pointer | None = None
    compare: Annotated[dict[str, Pointer], _names(_POINTER, 32, _POINTER_WORDS)] = {}


class Verify(Reading):
    """Reads the outcome where it should be visible."""

    url: Annotated[str, _url("key", "operation_id", "facts.<name>")]
    expect: SomeConditions


FormValue = str | bool | int | float
_NONE = {"const": None}
_ONE_BODY: dict[str, Any] = {
    "if": {"properties": {"body": {"type": "object"}}, "required": ["body"]},
    "then": {"properties": {"json": _NONE, "form": _NONE}},
    "else": {
        "if": {"properties": {"form": {"type": "object"}}, "required": ["form"]},
        "then": {"properties": {"json": _NONE}},
    },
}


class HttpArguments(Model):
    """One HTTP request, and how its outcome can be found out.

    The body is JSON, or a form (`application/x-www-form-urlencoded`; a list is one name several times), or an artifact
    of the workflow, or nothing.
    `if_match` takes the ETag that the resource must still have, `if_none_match: "*"` says that there must be none yet.

    `{key}` in the URL and in any string of the JSON or form stands for the idempotency key, so that a provider which
    knows only references of its caller's can be given one.
    """

    model_config = ConfigDict(json_schema_extra=_ONE_BODY)

    method: Literal["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"]
    url: Annotated[str, _url("key")]
    headers: Headers = {}
    secret_headers: SecretHeaders = {}
    json_value: Annotated[JsonValue, Field(alias="json")] = None
    body: ArtifactReference | None = None
    form: Annotated[dict[str, FormValue | list[FormValue]], Field(min_length=1, max_length=200)] | None = None
    if_match: Annotated[str, _text(_ETAG, 256, _ETAG_WORDS)] | None = None
    if_none_match: Literal["*"] | None = None
    keep: Keep = {}
    operation_id: Pointer | None = None
    lookup: Lookup | None = None
    verify: Verify | None = None
    timeout_seconds: Annotated[float, Field(gt=0, le=300)] | None = None

    @property
    def conditional(self) -> bool:
        """Whether it may only take effect on the state of the resource that its author saw."""
        return self.if_match is not None or self.if_none_match is not None
