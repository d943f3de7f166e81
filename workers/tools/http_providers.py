"""The operator's allow-list: which providers may be called, and what each can be relied on for.

What a provider honours is the operator's word, in a file, and never an argument: arguments come from an agent, and a
wrong word there would make a second effect.
"""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from django.conf import settings
from pydantic import Field, ValidationError, model_validator

from checkpoint.contracts import EVERY_FACT, Compensation, Contract, RecoveryClass, Reversibility, Variant
from workers.tools.http_arguments import READS, URL, Model, SecretName

SETTING = "CHECKPOINT_HTTP_PROVIDERS"
DEFAULT_FILE = "deploy/providers.toml"

# RFC 9110 section 15.5.2: 401 "indicates that the request has not been applied". No other status says so.
NOT_APPLIED_BY_DEFAULT = [401]


class Undo(Model):
    """The call that undoes this provider's effects; see `checkpoint.contracts.Compensation`."""

    tool: str
    arguments: dict[str, Any]


class Provider(Model):
    """One entry of the file. All times are seconds.

    Attributes:
        url: prefix of every URL it stands for; where several fit, the longest counts.
        private: its host may have a private, loopback or link-local address.
        honours_key: an Idempotency-Key that comes again gets the first answer and no second effect.
        queryable: a lookup that finds nothing after `settle_seconds` proves that there is nothing.
        conditional: it holds If-Match and If-None-Match against the resource in one step with the change, and 412 says
            that nothing happened (RFC 9110 section 13.1); an ETag never comes back, not even with an old content.
        key_lifetime_seconds: how long a key is remembered; left out: for ever.
        concurrent_same_key_safe: a key may come again while its first request is worked on.
        not_applied_statuses: statuses by which this provider says that nothing happened.
        replay_header: header that marks an answer repeated for a key.
        secrets: names of the secrets that may be sent to it.
        compensation: how an effect is undone; only where it is compensable.
        deadline_seconds, settle_seconds, reversibility, where_to_look, link: see `checkpoint.contracts.Contract`.
    """

    name: Annotated[str, Field(pattern=r"^[a-z][a-z0-9-]{0,31}$")]
    url: Annotated[str, Field(pattern=URL)]
    private: bool = False
    honours_key: bool = False
    queryable: bool = False
    conditional: bool = False
    key_lifetime_seconds: Annotated[float, Field(gt=0)] | None = None
    concurrent_same_key_safe: bool = False
    deadline_seconds: Annotated[float, Field(gt=0, le=3600)] = 30.0
    settle_seconds: Annotated[float, Field(ge=0)] = 5.0
    reversibility: Literal["none_needed", "compensable", "irreversible"] = "irreversible"
    compensation: Undo | None = None
    where_to_look: str = ""
    link: Annotated[str, Field(pattern=r"^(?:https?://[!-~]*)?$")] = ""
    not_applied_statuses: list[Annotated[int, Field(ge=400, le=599)]] = NOT_APPLIED_BY_DEFAULT
    replay_header: str = "Idempotent-Replayed"
    secrets: list[SecretName] = Field(default=[])

    @model_validator(mode="after")
    def _promises_fit(self) -> Self:
        if self.honours_key and 409 in self.not_applied_statuses:
            raise ValueError("409 from a provider that honours keys can mean that the first request is still worked on")
        if self.compensation is not None and self.reversibility != "compensable":
            raise ValueError('only a provider with reversibility = "compensable" has a compensation')
        return self

    def pattern(self) -> str:
        """Regular expression of the URLs below `url`, for Python and for JSON Schema alike."""
        return "^" + re.escape(self.url) + ("" if self.url.endswith("/") else r"(?:[/?]|$)")

    def variants(self) -> Iterable[Variant]:
        """The contracts of this provider's calls; they differ by what the arguments make possible."""
        for verified in (True, False):
            yield self._variant(["read"], self._contract(RecoveryClass.READ_ONLY, verified=verified), reads=True)
        if self.conditional and not self.honours_key:
            for verified in (True, False):
                yield self._variant(["conditional"], self._contract_of_conditional(verified=verified), reads=False)
        for looked_up in (True, False) if self.queryable else (False,):
            for verified in (True, False):
                recovery = self._recovery(looked_up)
                contract = self._contract(recovery, looked_up=looked_up, verified=verified)
                yield self._variant([_WORD[recovery]], contract, reads=False)

    def _contract_of_conditional(self, *, verified: bool) -> Contract:
        """Sent again it changes nothing more; only a lookup tells a 412 to that from somebody else's change."""
        contract = self._contract(RecoveryClass.IDEMPOTENT, looked_up=True, verified=verified)
        return replace(contract, key_lifetime=None, concurrent_same_key_safe=True)

    def _recovery(self, looked_up: bool) -> RecoveryClass:
        if self.honours_key:
            return RecoveryClass.IDEMPOTENT
        return RecoveryClass.QUERYABLE if looked_up else RecoveryClass.OPAQUE

    def _contract(self, recovery: RecoveryClass, *, looked_up: bool = False, verified: bool) -> Contract:
        harmless = recovery is RecoveryClass.READ_ONLY
        undo = None if harmless else self.compensation
        return Contract(
            recovery=recovery,
            reversibility=Reversibility.NONE_NEEDED if harmless else Reversibility(self.reversibility),
            deadline=self.deadline_seconds,
            settle=self.settle_seconds,
            key_lifetime=self.key_lifetime_seconds,
            concurrent_same_key_safe=self.concurrent_same_key_safe,
            can_inspect=looked_up,
            can_verify=verified,
            where_to_look=self.where_to_look,
            link=self.link,
            compensation=Compensation(undo.tool, undo.arguments) if undo else None,
            facts=(EVERY_FACT,),
        )

    def _variant(self, words: list[str], contract: Contract, *, reads: bool) -> Variant:
        conditions: list[dict[str, Any]] = [
            {"properties": {"url": {"pattern": self.pattern()}}, "required": ["url"]},
            _is_read() if reads else {"not": _is_read()},
        ]
        if words == ["conditional"]:
            conditions.append(_has("if_match", "string"))
        if contract.can_inspect:
            conditions.append(_has("lookup"))
        if contract.can_verify:
            conditions.append(_has("verify"))
        words = [*words, *(["lookup"] if contract.can_inspect else []), *(["verify"] if contract.can_verify else [])]
        return Variant(name=f"{self.name}: {', '.join(words)}", contract=contract, when={"allOf": conditions})


_WORD = {RecoveryClass.IDEMPOTENT: "keyed", RecoveryClass.QUERYABLE: "queryable", RecoveryClass.OPAQUE: "opaque"}

# Every set of arguments has a contract. A URL that is on no list is refused before anything is sent.
UNLISTED = Variant(
    name="unlisted",
    contract=Contract(
        recovery=RecoveryClass.OPAQUE,
        reversibility=Reversibility.IRREVERSIBLE,
        where_to_look=f"Nowhere: this URL is not on the list of providers ({SETTING}), so nothing is ever sent to it.",
    ),
)


class AllowList:
    """The providers, the longest prefix first."""

    def __init__(self, providers: Iterable[Provider]) -> None:
        self.providers = sorted(providers, key=lambda provider: -len(provider.url))

    def provider_for(self, url: str) -> Provider | None:
        """The provider whose prefix fits best."""
        return next((provider for provider in self.providers if re.search(provider.pattern(), url)), None)

    def variants(self) -> Sequence[Variant]:
        """The contract variants of all providers; the first that matches counts."""
        return [*(variant for provider in self.providers for variant in provider.variants()), UNLISTED]


class ProvidersFileInvalid(Exception):
    """The operator's file cannot be used; the message names the file and the entry."""


@lru_cache(maxsize=8)
def load(path: Path | None = None) -> AllowList:
    """The allow-list of a file, or of the one that CHECKPOINT_HTTP_PROVIDERS names, once per process.

    Raises:
        ProvidersFileInvalid: the file is missing, is not TOML, or an entry is wrong.
    """
    file = path or settings.BASE_DIR / (os.environ.get(SETTING) or DEFAULT_FILE)
    try:
        with file.open("rb") as opened:
            content = tomllib.load(opened)
    except (OSError, tomllib.TOMLDecodeError) as error:
        raise ProvidersFileInvalid(f"{file} ({SETTING}): {error}") from error
    if unknown := set(content) - {"provider"}:
        raise ProvidersFileInvalid(f"{file}: {sorted(unknown)} is unknown; every entry starts with [[provider]]")
    return AllowList(_unique(file, [_read(file, number, entry) for number, entry in enumerate(_entries(content), 1)]))


def _entries(content: dict[str, Any]) -> list[Any]:
    entries = content.get("provider", [])
    return entries if isinstance(entries, list) else [entries]


def _read(file: Path, number: int, entry: Any) -> Provider:
    try:
        return Provider.model_validate(entry)
    except ValidationError as error:
        faults = "; ".join(f"{'.'.join(map(str, fault['loc']))}: {fault['msg']}" for fault in error.errors())
        raise ProvidersFileInvalid(f"{file}: [[provider]] number {number}: {faults}") from None


def _unique(file: Path, providers: list[Provider]) -> list[Provider]:
    for field in ("name", "url"):
        values = [getattr(provider, field) for provider in providers]
        if doubled := sorted({value for value in values if values.count(value) > 1}):
            raise ProvidersFileInvalid(f"{file}: more than one [[provider]] has the {field} {doubled[0]!r}")
    return providers


def _is_read() -> dict[str, Any]:
    return {"properties": {"method": {"enum": list(READS)}}, "required": ["method"]}


def _has(member: str, kind: str = "object") -> dict[str, Any]:
    return {"properties": {member: {"type": kind}}, "required": [member]}
