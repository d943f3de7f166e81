"""One request out, one answer back, through the allow-list. What is not known afterwards is said to be unknown."""

from __future__ import annotations

import re
import ssl
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from urllib.parse import urljoin, urlsplit

import httpcore
import httpx

from checkpoint.outcomes import NotApplied
from workers.registry import Deadline
from workers.tools.http_arguments import URL
from workers.tools.http_network import Network
from workers.tools.http_providers import SETTING, AllowList, Provider
from workers.tools.secrets import Secrets

LARGEST_ANSWER = 1024 * 1024  # bytes
MOST_REDIRECTS = 3

Content = bytes | Iterator[bytes]

_REDIRECTS = {301, 302, 303, 307, 308}
_ORIGIN = re.compile(r"(?P<scheme>https?)://(?P<netloc>(?P<host>\[[^]]+\]|[^:/]+)(?::(?P<port>\d+))?)(?P<target>/.*)")


class NoAnswer(Exception):
    """The request may have arrived, and no usable answer came back."""


@dataclass(frozen=True)
class Answer:
    """An answer as it came. `headers` has lower-case names."""

    status: int
    headers: Mapping[str, str]
    content: bytes
    provider: Provider

    @property
    def ok(self) -> bool:
        """Whether the status is 2xx."""
        return 200 <= self.status < 300

    @property
    def replayed(self) -> bool:
        """Whether the provider marks this answer as repeated for the key."""
        return self.headers.get(self.provider.replay_header.lower(), "").lower() not in ("", "false")


@dataclass(frozen=True)
class Exchange:
    """What the requests of one call share. `sending` is called when a request starts to go out."""

    allow_list: AllowList
    secrets: Secrets
    deadline: Deadline
    sending: Callable[[], None] = lambda: None

    def send(
        self,
        method: str,
        url: str,
        headers: Mapping[str, str],
        secret_headers: Mapping[str, str],
        content: Content | None = None,
    ) -> Answer:
        """Sends one request and follows nothing.

        Raises:
            NotApplied: no byte of it went out.
            NoAnswer: at least one byte may have gone out, and no usable answer came.
        """
        provider = self.provider(url)
        all_headers = _merged(_OURS, headers, self._secret_values(provider, secret_headers))
        network = Network(self.deadline, private=provider.private, sending=self.sending)
        return _exchange(method, url, all_headers, content, provider, network)

    def get(
        self, url: str, headers: Mapping[str, str], secret_headers: Mapping[str, str], *, method: str = "GET"
    ) -> Answer:
        """Reads with GET or HEAD; redirects are followed while they stay on the same host and with the same provider.

        Raises:
            NotApplied: nothing was sent.
            NoAnswer: no usable answer came, or a redirect leads elsewhere.
        """
        for _ in range(MOST_REDIRECTS + 1):
            answer = self.send(method, url, headers, secret_headers)
            if answer.status not in _REDIRECTS or not answer.headers.get("location"):
                return answer
            url = self._next(url, answer)
        raise NoAnswer(f"more than {MOST_REDIRECTS} redirects")

    def provider(self, url: str) -> Provider:
        """The provider that the URL belongs to.

        Raises:
            NotApplied: there is none; nothing may be sent.
        """
        provider = self.allow_list.provider_for(url) if re.search(URL, url) else None
        if provider is None:
            raise NotApplied(
                f"nothing was sent: {_without_query(url)} belongs to no provider in the operator's list ({SETTING})",
                code="not_allowed",
                permanent=True,
            )
        return provider

    def _secret_values(self, provider: Provider, names: Mapping[str, str]) -> dict[str, str]:
        for name in names.values():
            if name not in provider.secrets:
                raise NotApplied(
                    f"nothing was sent: the secret {name} may not be sent to provider {provider.name}; "
                    "the operator's list names the secrets that may",
                    code="secret_not_allowed",
                    permanent=True,
                )
        return {header: self.secrets.value(name) for header, name in names.items()}

    def _next(self, url: str, answer: Answer) -> str:
        target = urljoin(url, answer.headers["location"])
        same_origin = urlsplit(target)[:2] == urlsplit(url)[:2]
        if not same_origin or not re.search(URL, target) or self.allow_list.provider_for(target) != answer.provider:
            raise NoAnswer(f"redirected to {_without_query(target)}; redirects are followed on the same host only")
        return target


# Without compression the size limit counts what is really there.
_OURS = {"Accept": "application/json", "Accept-Encoding": "identity", "User-Agent": "checkpoint", "Connection": "close"}


def _merged(*several: Mapping[str, str]) -> dict[str, str]:
    """Later ones win, whatever the case of the name."""
    merged = {name.lower(): (name, value) for headers in several for name, value in headers.items()}
    return dict(merged.values())


def _exchange(
    method: str,
    url: str,
    headers: Mapping[str, str],
    content: Content | None,
    provider: Provider,
    network: Network,
) -> Answer:
    try:
        return _answer(method, url, headers, content, provider, network)
    except (NotApplied, NoAnswer):
        raise
    except Exception as error:
        # What decides is not the kind of error but whether a byte of the request had gone out.
        if network.sent:
            raise NoAnswer(f"no answer from {provider.name}: {_words(error)}") from None
        raise NotApplied(f"nothing was sent to {provider.name}: {_words(error)}", code="never_sent") from None


def _answer(
    method: str,
    url: str,
    headers: Mapping[str, str],
    content: Content | None,
    provider: Provider,
    network: Network,
) -> Answer:
    parts = _ORIGIN.fullmatch(url)
    assert parts, "the URL was matched by the allow-list"
    where = httpcore.URL(
        scheme=parts["scheme"],
        host=parts["host"].strip("[]"),
        port=int(parts["port"] or 0) or None,
        target=parts["target"],
    )
    all_headers = {"Host": parts["netloc"], **headers}
    # A new connection for each request: on a kept one, "was a byte sent?" and "is it still open?" cannot be answered.
    with (
        httpcore.ConnectionPool(ssl_context=_tls(), network_backend=network) as pool,
        pool.stream(method, where, headers=list(all_headers.items()), content=content) as response,
    ):
        received = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in response.headers}
        return Answer(response.status, received, _capped(response, provider), provider)


def _capped(response: httpcore.Response, provider: Provider) -> bytes:
    content = bytearray()
    for chunk in response.iter_stream():
        content += chunk
        if len(content) > LARGEST_ANSWER:
            raise NoAnswer(
                f"{provider.name} answered with status {response.status} and more than {LARGEST_ANSWER} bytes, "
                "which are not read: the outcome is unknown"
            )
    return bytes(content)


@lru_cache(maxsize=1)
def _tls() -> ssl.SSLContext:
    return httpx.create_ssl_context()


def _words(error: Exception) -> str:
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__


def _without_query(url: str) -> str:
    return url.partition("?")[0]
