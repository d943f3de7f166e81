"""`email.send`: one message over SMTP, to all of its recipients or to none.

SMTP has no keys and cannot be asked. So the Message-ID is made from the step's key, and where the account says where a
message can be looked up, that is done by it; without, a lost reply is a question to a person.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from checkpoint.contracts import Variant
from checkpoint.crash_points import reach
from checkpoint.outcomes import (
    Found,
    Inconclusive,
    Inspection,
    NotApplied,
    NotVisible,
    Receipt,
    Verification,
    Visible,
)
from workers.registry import Call
from workers.tools import email_accounts, email_lookup
from workers.tools.email_accounts import SETTING, Account, Accounts
from workers.tools.email_arguments import EmailArguments
from workers.tools.email_message import message_bytes
from workers.tools.email_transaction import Accepted, OutcomeUnknown, transact
from workers.tools.held_lines import held_until
from workers.tools.secrets import Secrets


class EmailSend:
    """One instance serves all calls and keeps nothing between them."""

    name = "email.send"
    version = "1"
    summary = "Sends one e-mail from an allowed account"
    Arguments = EmailArguments
    reports_sending = True

    def __init__(self, accounts: Accounts | None = None, secrets: Secrets | None = None) -> None:
        self._given = accounts
        self._secrets = secrets or Secrets()

    def variants(self) -> Sequence[Variant]:
        """What each account on the list can be relied on for."""
        return self._accounts().variants()

    def execute(self, arguments: EmailArguments, call: Call) -> Receipt:
        """Sends the message in one SMTP transaction.

        Raises:
            NotApplied: it was sent to nobody.
            OutcomeUnknown: it went out, and no reply says what became of it.
        """
        with self._redacted():
            account = self._account(arguments)
            content = message_bytes(arguments, account, call.key)
            call.deadline.check_before_send()

            def answered(accepted: Accepted) -> None:
                reach("email.send/answered", call.step_name)
                call.answered(self._receipt(account, arguments, call, content, accepted))

            with held_until(call.deadline) as lines:
                accepted = transact(
                    account,
                    self._secrets,
                    lines,
                    recipients=arguments.recipients(),
                    content=content,
                    sending=lambda: _sending(call),
                    answered=answered,
                )
            return self._receipt(account, arguments, call, content, accepted)

    def inspect(self, arguments: EmailArguments, call: Call) -> Inspection:
        """Looks the Message-ID up."""
        try:
            with self._redacted():
                return email_lookup.look_up(self._account(arguments), arguments, call, self._secrets)
        except Exception as error:
            return Inconclusive(f"the lookup failed: {error}")

    def verify(self, arguments: EmailArguments, call: Call) -> Verification:
        """Looks the Message-ID up: what the server kept of the message, not what it replied."""
        match self.inspect(arguments, call):
            case Found(receipt) if receipt.arguments_match:
                return Visible(receipt.facts)
            case Found(receipt):
                return NotVisible("the message that is there has another subject or other recipients", receipt.facts)
            case Inconclusive(message):
                return NotVisible(message)
            case _:
                return NotVisible("the message is not there yet")

    def _accounts(self) -> Accounts:
        return self._given or email_accounts.load()

    def _account(self, arguments: EmailArguments) -> Account:
        account = self._accounts().get(arguments.account)
        if account is None:
            message = f"nothing was sent: there is no account {arguments.account} on the operator's list ({SETTING})"
            raise NotApplied(message, code="not_allowed", permanent=True)
        if (count := len(arguments.recipients())) > account.most_recipients:
            message = f"nothing was sent: {count} recipients; account {account.name} allows {account.most_recipients}"
            raise NotApplied(message, code="too_many_recipients", permanent=True)
        return account

    def _receipt(
        self, account: Account, arguments: EmailArguments, call: Call, content: bytes, accepted: Accepted
    ) -> Receipt:
        message_id = account.message_id(call.key)
        facts = {
            "message_id": message_id,
            "reply": self._secrets.redact(accepted.reply),
            "recipients": len(arguments.recipients()),
            "size": len(content),
            "sha256": hashlib.sha256(content).hexdigest(),
            **({"queue_id": self._secrets.redact(accepted.queue_id)} if accepted.queue_id else {}),
        }
        return Receipt(message_id, facts)

    @contextmanager
    def _redacted(self) -> Iterator[None]:
        """No message leaves with a secret in it, and no original error is carried along that could hold one."""
        try:
            yield
        except NotApplied as error:
            message = self._secrets.redact(str(error))
            raise NotApplied(message, code=error.code, permanent=error.permanent) from None
        except Exception as error:
            words = str(error) if isinstance(error, OutcomeUnknown) else f"{type(error).__name__}: {error}"
            raise OutcomeUnknown(self._secrets.redact(words)) from None


def _sending(call: Call) -> None:
    reach("email.send/handed_over", call.step_name)
    call.sending()
