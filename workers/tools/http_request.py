"""`http.request`: one request to a provider on the operator's list, looked up and verified as its arguments say."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from email.utils import parsedate_to_datetime
from time import time

from checkpoint.contracts import Variant
from checkpoint.outcomes import (
    Inconclusive,
    Inspection,
    NotApplied,
    NotVisible,
    Receipt,
    Unanswered,
    Verification,
)
from workers.registry import Call, Deadline
from workers.tools import http_answer, http_providers
from workers.tools.http_arguments import READS, HttpArguments
from workers.tools.http_body import body_of, sent_value
from workers.tools.http_exchange import Answer, Exchange, NoAnswer
from workers.tools.http_providers import AllowList
from workers.tools.http_reading import HttpReading, values_of
from workers.tools.secrets import Secrets

# Statuses which the same request gets again, whenever it is sent.
_HOPELESS = {400, 405, 406, 410, 411, 412, 413, 414, 415, 422}
_PRECONDITION_FAILED = 412

LONGEST_RETRY_AFTER = 24 * 3600.0  # seconds


class OutcomeUnknown(Unanswered):
    """The request may have taken effect; the message says what is known."""


class HttpRequest:
    """One instance serves all calls and keeps nothing between them."""

    name = "http.request"
    version = "1"
    summary = "Sends one HTTP request to an allowed provider"
    Arguments = HttpArguments
    reports_sending = True

    def __init__(self, allow_list: AllowList | None = None, secrets: Secrets | None = None) -> None:
        self._given = allow_list
        self._secrets = secrets or Secrets()

    def variants(self) -> Sequence[Variant]:
        """What each provider on the list can be relied on for, by URL and by what the arguments make possible."""
        return self._allow_list().variants()

    def execute(self, arguments: HttpArguments, call: Call) -> Receipt:
        """Sends the request, with `Idempotency-Key: <call.key>` unless it only reads.

        Raises:
            NotApplied: nothing was sent, a declared status says that nothing happened, or a read failed.
            OutcomeUnknown: everything else that is not 2xx.
        """
        with self._redacted():
            if arguments.method in READS:
                return self._read(arguments, call)
            answer = self._send(arguments, call)
            if answer.ok:
                return self._receipt(answer, arguments)
            raise self._failure(answer, arguments)

    def inspect(self, arguments: HttpArguments, call: Call) -> Inspection:
        """Sends the lookup of the arguments and reads what it says."""
        lookup = arguments.lookup
        if lookup is None:
            return Inconclusive("the arguments have no lookup")
        try:
            with self._redacted():
                return self._reading(arguments, call).look_up(lookup)
        except Exception as error:
            return Inconclusive(f"the lookup failed: {error}")

    def verify(self, arguments: HttpArguments, call: Call) -> Verification:
        """Sends the verify request of the arguments and checks what it expects."""
        verify = arguments.verify
        if verify is None:
            return NotVisible("the arguments have no verify request")
        try:
            with self._redacted():
                return self._reading(arguments, call).verify(verify)
        except Exception as error:
            return NotVisible(f"reading failed: {error}")

    def _allow_list(self) -> AllowList:
        return self._given or http_providers.load()

    def _exchange(self, arguments: HttpArguments, call: Call) -> Exchange:
        deadline = call.deadline
        if arguments.timeout_seconds is not None:
            # The arguments may shorten the provider's deadline; recovery counts on its not getting longer.
            deadline = min(deadline, Deadline.after(arguments.timeout_seconds), key=lambda one: one.at)
        return Exchange(self._allow_list(), self._secrets, deadline, call.sending)

    def _send(self, arguments: HttpArguments, call: Call) -> Answer:
        with body_of(arguments, call) as body:
            return self._exchange(arguments, call).send(
                arguments.method,
                http_answer.filled(arguments.url, {"key": call.key}, quoted=True),
                {**body.headers, **arguments.headers, **_condition(arguments), "Idempotency-Key": call.key},
                arguments.secret_headers,
                body.content,
            )

    def _read(self, arguments: HttpArguments, call: Call) -> Receipt:
        exchange = self._exchange(arguments, call)
        url = http_answer.filled(arguments.url, {"key": call.key}, quoted=True)
        try:
            answer = exchange.get(url, arguments.headers, arguments.secret_headers, method=arguments.method)
        except NoAnswer as error:
            # A read has no effect, so a read that failed was not applied, whatever was sent.
            raise NotApplied(str(error), code="read_failed") from None
        if not answer.ok:
            raise self._not_applied(answer)
        return self._receipt(answer, arguments)

    def _receipt(self, answer: Answer, arguments: HttpArguments) -> Receipt:
        return Receipt(
            operation_id=http_answer.operation_id_of(answer, arguments.operation_id, self._secrets.redact),
            facts=http_answer.facts_of(answer, arguments.keep, self._secrets.redact),
        )

    def _failure(self, answer: Answer, arguments: HttpArguments) -> Exception:
        if answer.replayed:
            # It speaks of the first request under this key, not of this one, so it proves nothing about either.
            return OutcomeUnknown(
                f"{self._said(answer)}. The header {answer.provider.replay_header} marks it as repeated for this key: "
                "the provider has cached this failure, and sending again will bring it again"
            )
        if answer.status == _PRECONDITION_FAILED and arguments.conditional and answer.provider.conditional:
            return self._not_applied(answer)
        if answer.status in answer.provider.not_applied_statuses:
            return self._not_applied(answer)
        if answer.status == 409 and answer.provider.honours_key:
            return OutcomeUnknown(f"{self._said(answer)}. A request with this key may still be in progress")
        return OutcomeUnknown(f"{self._said(answer)}. This status does not prove that nothing happened")

    def _not_applied(self, answer: Answer) -> NotApplied:
        return NotApplied(
            self._said(answer),
            code=f"status_{answer.status}",
            retry_after=_retry_after(answer.headers.get("retry-after", ""), answer.headers.get("date", "")),
            permanent=answer.status in _HOPELESS,
        )

    def _said(self, answer: Answer) -> str:
        return http_answer.said(answer, self._secrets.redact)

    def _reading(self, arguments: HttpArguments, call: Call) -> HttpReading:
        sent = sent_value(arguments, call.key)
        return HttpReading(self._exchange(arguments, call), self._secrets.redact, sent, values_of(call))

    @contextmanager
    def _redacted(self) -> Iterator[None]:
        """No message leaves with a secret in it, and no original error is carried along that could hold one."""
        try:
            yield
        except NotApplied as error:
            message = self._secrets.redact(str(error))
            raise NotApplied(
                message, code=error.code, retry_after=error.retry_after, permanent=error.permanent
            ) from None
        except (OutcomeUnknown, NoAnswer, http_answer.Missing) as error:
            raise OutcomeUnknown(self._secrets.redact(str(error))) from None
        except Exception as error:
            raise OutcomeUnknown(self._secrets.redact(f"{type(error).__name__}: {error}")) from None


def _condition(arguments: HttpArguments) -> dict[str, str]:
    """If-Match and If-None-Match, which win over headers of these names."""
    given = {"If-Match": arguments.if_match, "If-None-Match": arguments.if_none_match}
    return {name: value for name, value in given.items() if value is not None}


def _retry_after(header: str, said_at: str) -> float | None:
    """Seconds from a Retry-After header: a number of seconds or a date (RFC 9110 section 10.2.3).

    A date is held against the provider's own Date, so that nobody's clock but the provider's counts.
    """
    try:
        seconds = float(header) if header.isdecimal() else parsedate_to_datetime(header).timestamp() - _clock(said_at)
    except (ValueError, OverflowError):
        return None
    return min(max(0.0, seconds), LONGEST_RETRY_AFTER)


def _clock(date: str) -> float:
    """What a Date header says, or this machine's clock where it says nothing."""
    try:
        return parsedate_to_datetime(date).timestamp()
    except (ValueError, OverflowError):
        return time()
