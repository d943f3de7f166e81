"""Where a person finds out what happened: the sentence and link that the tool's operator put into its contract."""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import quote, urlsplit

from checkpoint.contracts import Contract


@dataclass(frozen=True)
class Place:
    """Where to look; `link` is empty where the contract has none, or it lacks what goes into it."""

    sentence: str
    link: str


def place(contract: Contract | None, *, key: str, operation_id: str) -> Place:
    """The contract's place for one effect. Key and operation id are quoted: they cannot change where the link leads."""
    if contract is None:
        return Place("", "")
    return Place(contract.where_to_look, _link(contract.link, {"{key}": key, "{operation_id}": operation_id}))


def _link(template: str, values: dict[str, str]) -> str:
    # A placeholder in the host would let the provider's answer choose the site.
    if urlsplit(template).scheme not in {"http", "https"} or "{" in urlsplit(template).netloc:
        return ""
    for placeholder, value in values.items():
        if placeholder in template and not value:
            return ""
        template = template.replace(placeholder, quote(value, safe=""))
    return template
