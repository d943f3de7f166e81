"""The network under one request: checked addresses, one total deadline, and the knowledge whether a byte went out."""

from __future__ import annotations

import ipaddress
import socket
import ssl
from collections.abc import Callable, Iterable
from typing import Any

import httpcore

from checkpoint.outcomes import NotApplied
from workers.registry import Deadline

_SLICE = 64 * 1024
_NAT64 = ipaddress.ip_network("64:ff9b::/96")


class Network(httpcore.NetworkBackend):
    """Connects for one request, once. httpcore asks it for a connection and then speaks HTTP over what it gets.

    `sending` is called once, when the request starts to go out.

    Attributes:
        sent: True from just before the first byte of the request went out. TLS handshakes do not count.
    """

    def __init__(self, deadline: Deadline, *, private: bool, sending: Callable[[], None] = lambda: None) -> None:
        self.sent = False
        self.deadline = deadline
        self._sending = sending
        self._private = private

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.NetworkStream:
        """Resolves the host once, checks every address, and connects to a checked one (no second look-up to rebind).

        Raises:
            NotApplied: an address is private and the provider's entry does not allow that.
        """
        addresses = _resolve(host, port)
        if not self._private:
            _refuse_private(host, addresses)
        return _Stream(self._connect_one_of(addresses, port), self)

    def begin_sending(self) -> None:
        """Called before each write: the first one of a request is where it starts to go out.

        Raises:
            NotApplied: the deadline has passed; nothing was sent.
        """
        if not self.sent:
            self.deadline.check_before_send()
            self._sending()
            self.sent = True

    def time_left(self, of: type[httpcore.TimeoutException]) -> float:
        """Seconds until the deadline; raises `of` when it has passed, so that slow drips cannot stretch it."""
        remaining = self.deadline.remaining()
        if remaining <= 0:
            raise of("the call's deadline passed")
        return remaining

    def _connect_one_of(self, addresses: list[str], port: int) -> httpcore.NetworkStream:
        failure: Exception = httpcore.ConnectError("the name has no address")
        for left in range(len(addresses), 0, -1):
            share = self.time_left(httpcore.ConnectTimeout) / left
            try:
                return httpcore.SyncBackend().connect_tcp(addresses[-left], port, timeout=share)
            except (httpcore.ConnectError, httpcore.ConnectTimeout) as error:
                failure = error
        raise failure


class _Stream(httpcore.NetworkStream):
    """A connection that holds to the deadline and tells the network when the request starts to go out."""

    def __init__(self, stream: httpcore.NetworkStream, network: Network) -> None:
        self._stream = stream
        self._network = network

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        return self._stream.read(max_bytes, self._network.time_left(httpcore.ReadTimeout))

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        self._network.begin_sending()
        for start in range(0, len(buffer), _SLICE):
            self._stream.write(buffer[start : start + _SLICE], self._network.time_left(httpcore.WriteTimeout))

    def close(self) -> None:
        self._stream.close()

    def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore.NetworkStream:
        left = self._network.time_left(httpcore.ConnectTimeout)
        return _Stream(self._stream.start_tls(ssl_context, server_hostname, left), self._network)

    def get_extra_info(self, info: str) -> Any:
        return self._stream.get_extra_info(info)


def _resolve(host: str, port: int) -> list[str]:
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except OSError as error:
        raise httpcore.ConnectError(f"the name {host} cannot be resolved: {error}") from error
    return list(dict.fromkeys(str(address[0]) for *_, address in found))


def _refuse_private(host: str, addresses: list[str]) -> None:
    for address in addresses:
        if not _is_public(address):
            raise NotApplied(
                f"nothing was sent: {host} has the address {address}, which is not a public one; "
                "only a provider with `private = true` may have such an address",
                code="address_refused",
                permanent=True,
            )


def _is_public(text: str) -> bool:
    address: ipaddress.IPv4Address | ipaddress.IPv6Address = ipaddress.ip_address(text)
    if isinstance(address, ipaddress.IPv6Address):
        address = _inner_v4(address) or address
    return address.is_global and not address.is_multicast


def _inner_v4(address: ipaddress.IPv6Address) -> ipaddress.IPv4Address | None:
    """The IPv4 address that an IPv6 one leads to: mapped, 6to4 and NAT64 addresses reach private networks too."""
    if address in _NAT64:
        return ipaddress.IPv4Address(int(address) & 0xFFFF_FFFF)
    return address.ipv4_mapped or address.sixtofour
