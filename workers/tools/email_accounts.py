"""The operator's list of mail accounts: where each sends, as whom, within which limits, and where it can be asked."""

from __future__ import annotations

import ssl
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Annotated, Any, Literal, Self

from pydantic import Field, model_validator

from checkpoint.contracts import Contract, RecoveryClass, Reversibility, Variant
from workers.tools import operator_lists
from workers.tools.email_arguments import ADDRESS, MOST_ADDRESSES, Line
from workers.tools.http_arguments import Lookup, Model, SecretName

SETTING = "CHECKPOINT_MAIL_ACCOUNTS"
DEFAULT_FILE = "deploy/mail-accounts.toml"

_LOOPBACK = ("127.0.0.1", "::1", "localhost")


class MailServer(Model):
    """How a server is reached.

    Attributes:
        security: TLS from the first byte, TLS by STARTTLS (never without), or none.
        ca_file: certificates to trust in place of the system's.
        username, secret: how to log in; `secret` is the name of the secret with the password. None: no login.
    """

    host: Annotated[str, Field(pattern=r"^[A-Za-z0-9.:-]{1,253}$")]
    port: Annotated[int, Field(ge=1, le=65535)]
    security: Literal["tls", "starttls", "none"] = "tls"
    ca_file: str = ""
    username: Annotated[str, Field(pattern=r'^[^\x00-\x20\x7f-\uffff"\\(){%*]{0,200}$')] = ""
    secret: SecretName | None = None

    @model_validator(mode="after")
    def _no_password_in_the_clear(self) -> Self:
        if bool(self.username) != (self.secret is not None):
            raise ValueError("username and secret go together")
        if self.secret and self.security == "none" and self.host not in _LOOPBACK:
            raise ValueError('a password goes over TLS only: security must be "tls" or "starttls"')
        return self

    def tls(self) -> ssl.SSLContext:
        """A context that checks the certificate and the name in it."""
        return ssl.create_default_context(cafile=self.ca_file or None)


class SentFolder(MailServer):
    """An IMAP folder in which the mail server itself keeps what it took. `folder` is written as IMAP writes it."""

    folder: Annotated[str, Field(pattern=r'^[^\x00-\x1f\x7f-\uffff"\\]{1,200}$')] = "Sent"


class Account(MailServer):
    """One entry of the file. All times are seconds.

    Attributes:
        sender, sender_name: what stands in From, and the envelope's sender.
        sent_folder, lookup: where a message can be found again by its Message-ID, over IMAP or over HTTP (as the
            `lookup` of `http.request`, through a provider on its list); at most one of them.
        deadline_seconds: total time of one call.
        settle_seconds: how much later a message that was taken can still appear there.
        where_to_look, link: see `checkpoint.contracts.Contract`.
    """

    name: Annotated[str, Field(pattern=r"^[a-z][a-z0-9-]{0,31}$")]
    sender: Annotated[str, Field(pattern=ADDRESS)]
    sender_name: Line | None = None
    largest_message: Annotated[int, Field(ge=1024, le=64 * 1024 * 1024)] = 10 * 1024 * 1024  # bytes
    most_recipients: Annotated[int, Field(ge=1, le=3 * MOST_ADDRESSES)] = 20
    sent_folder: SentFolder | None = None
    lookup: Lookup | None = None
    deadline_seconds: Annotated[float, Field(gt=0, le=600)] = 60.0
    settle_seconds: Annotated[float, Field(ge=0)] = 60.0
    where_to_look: str = ""
    link: Annotated[str, Field(pattern=r"^(?:https?://[!-~]*)?$")] = ""

    @model_validator(mode="after")
    def _asked_in_one_place(self) -> Self:
        if self.sent_folder and self.lookup:
            raise ValueError("sent_folder and lookup: one of them is the place that is asked")
        return self

    @property
    def can_be_asked(self) -> bool:
        """Whether a message can be looked up."""
        return self.sent_folder is not None or self.lookup is not None

    def message_id(self, key: str) -> str:
        """The Message-ID of the message with this key, without its angle brackets."""
        return f"{key}@{self.sender.rpartition('@')[2].lower()}"

    def variant(self) -> Variant:
        """The contract of this account's messages."""
        recovery = RecoveryClass.QUERYABLE if self.can_be_asked else RecoveryClass.OPAQUE
        contract = Contract(
            recovery,
            Reversibility.IRREVERSIBLE,
            deadline=self.deadline_seconds,
            settle=self.settle_seconds,
            can_inspect=self.can_be_asked,
            can_verify=self.can_be_asked,
            where_to_look=self.where_to_look or self._where(),
            link=self.link,
            facts=("message_id", "folder", "copies", "recipients", "size"),
        )
        when: dict[str, Any] = {"properties": {"account": {"const": self.name}}, "required": ["account"]}
        return Variant(f"{self.name}: {recovery.value}{', lookup' if self.can_be_asked else ''}", contract, when)

    def _where(self) -> str:
        place = f"the folder {self.sent_folder.folder}" if self.sent_folder else "the sent mail"
        return (
            f"Look into {place} of {self.sender}, or into the log of the mail server {self.host}, for the Message-ID "
            f"that is this step's key, then @{self.sender.rpartition('@')[2]}."
        )


# An account that is on no list is refused before anything is sent.
UNLISTED = Variant(
    name="unlisted",
    contract=Contract(
        RecoveryClass.OPAQUE,
        Reversibility.IRREVERSIBLE,
        where_to_look=f"Nowhere: this mail account is not on the list ({SETTING}), so nothing is ever sent from it.",
    ),
)


class Accounts:
    """The accounts by name."""

    def __init__(self, accounts: Iterable[Account]) -> None:
        self._by_name = {account.name: account for account in accounts}

    def get(self, name: str) -> Account | None:
        """The account of that name, if it is on the list."""
        return self._by_name.get(name)

    def variants(self) -> Sequence[Variant]:
        """The contracts of all of them; the first that matches counts."""
        return [*(account.variant() for account in self._by_name.values()), UNLISTED]


@lru_cache(maxsize=1)
def load() -> Accounts:
    """The list of the file that CHECKPOINT_MAIL_ACCOUNTS names, once per process.

    Raises:
        operator_lists.ListInvalid: the file cannot be used.
    """
    return Accounts(operator_lists.read(Account, table="account", setting=SETTING, default=DEFAULT_FILE))
