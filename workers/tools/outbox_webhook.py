"""An event to a receiver of Standard Webhooks: CloudEvents' JSON format, signed, posted once, no redirect followed."""

from __future__ import annotations

import time

import httpcore
import httpx

from checkpoint.outcomes import NotApplied, Receipt, Unanswered
from workers.registry import Call
from workers.tools.http_network import Network
from workers.tools.outbox_arguments import MEDIA_TYPE, Event
from workers.tools.outbox_destinations import Webhook
from workers.webhook_signing import signed_headers

_OURS = {"Content-Type": MEDIA_TYPE, "User-Agent": "checkpoint", "Connection": "close"}


def publish(event: Event, destination: Webhook, secret: str, call: Call) -> Receipt:
    """Posts it; 2xx is the receipt.

    Raises:
        NotApplied: nothing was sent, or a declared status says that nothing was taken.
        Unanswered: everything else.
    """
    where = httpx.URL(destination.url)
    if where.scheme != "https" and not destination.private:
        raise NotApplied(f"{destination.name} is not https", code="not_https", permanent=True)
    headers = {
        "Host": where.netloc.decode(),
        **_OURS,
        **signed_headers(secret, message_id=event.id, timestamp=int(time.time()), content=event.content),
    }
    network = Network(call.deadline, private=destination.private, sending=call.sending)
    try:
        status = _post(where, headers, event.content, network)
    except NotApplied:
        raise
    except Exception as error:
        words = f"{type(error).__name__}: {error}"
        if network.sent:
            raise Unanswered(f"the event was sent to {destination.name}, and no answer came: {words}") from None
        raise NotApplied(f"nothing was sent to {destination.name}: {words}", code="never_sent") from None
    if 200 <= status < 300:
        return Receipt(event.id, {"destination": destination.name, "status": status})
    said = f"{destination.name} answered with status {status}"
    if status in destination.not_applied_statuses:
        raise NotApplied(said, code=f"status_{status}")
    raise Unanswered(f"{said}. This status does not prove that nothing was taken")


def _post(where: httpx.URL, headers: dict[str, str], content: bytes, network: Network) -> int:
    target = httpcore.URL(scheme=where.raw_scheme, host=where.raw_host, port=where.port, target=where.raw_path)
    with (
        httpcore.ConnectionPool(ssl_context=httpx.create_ssl_context(), network_backend=network) as pool,
        pool.stream("POST", target, headers=list(headers.items()), content=content) as response,
    ):
        return int(response.status)
