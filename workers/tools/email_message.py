"""The message as it goes over the wire. The same arguments and key give the same bytes but for the date."""

from __future__ import annotations

import base64
import binascii
import re
from email import policy
from email.errors import MessageError
from email.headerregistry import Address
from email.message import EmailMessage
from email.parser import BytesParser
from email.utils import localtime

from checkpoint.outcomes import NotApplied
from workers.tools.email_accounts import Account
from workers.tools.email_arguments import EmailArguments

# ASCII whatever the text: a server need not offer 8BITMIME or SMTPUTF8, and no relay has anything to recode.
_POLICY = policy.SMTP.clone(cte_type="7bit", raise_on_defect=True)
_BARE_LINE_BREAK = re.compile(rb"\r(?!\n)|(?<!\r)\n")


def message_bytes(arguments: EmailArguments, account: Account, key: str) -> bytes:
    """The message, with CRLF after every line.

    Raises:
        NotApplied: it cannot be made from the arguments, or is larger than the account allows.
    """
    try:
        message = _message(arguments, account, key)
        return _checked(message.as_bytes(), message, account)
    except (ValueError, MessageError) as error:
        raise _refused(str(error)) from None


def _message(arguments: EmailArguments, account: Account, key: str) -> EmailMessage:
    message = _headers(arguments, account, key)
    message.set_content(arguments.text)
    if arguments.html:
        message.add_alternative(arguments.html, subtype="html")
    for attachment in arguments.attachments:
        maintype, _, subtype = attachment.media_type.partition("/")
        content = _decoded(attachment.name, attachment.content)
        message.add_attachment(content, maintype=maintype, subtype=subtype, filename=attachment.name)
    for number, part in enumerate(message.walk()):
        if part.is_multipart():
            part.set_boundary(f"=_{key[:48]}.{number}")
    return message


def _headers(arguments: EmailArguments, account: Account, key: str) -> EmailMessage:
    message = EmailMessage(_POLICY)
    message["Message-ID"] = f"<{account.message_id(key)}>"
    message["Date"] = localtime()
    message["From"] = Address(account.sender_name or "", addr_spec=account.sender)
    message["To"] = _addresses(arguments.to)
    if arguments.cc:
        message["Cc"] = _addresses(arguments.cc)
    if arguments.reply_to:
        message["Reply-To"] = Address(addr_spec=arguments.reply_to)
    message["Subject"] = arguments.subject
    message["Auto-Submitted"] = "auto-generated"  # RFC 3834: no out-of-office answers
    return message


def _addresses(texts: list[str]) -> list[Address]:
    return [Address(addr_spec=text) for text in texts]


def _decoded(name: str, content: str) -> bytes:
    try:
        return base64.b64decode(content.encode(), validate=True)
    except binascii.Error as error:
        raise _refused(f"the attachment {name} is not base64: {error}") from None


def _checked(content: bytes, message: EmailMessage, account: Account) -> bytes:
    if BytesParser().parsebytes(content, headersonly=True).keys() != message.keys():
        raise _refused("a header in it would have become two")
    if _BARE_LINE_BREAK.search(content):
        # Servers differ in what they take for the end of a message: a bare one could end it early.
        raise _refused("a line in it does not end with CR and LF")
    if len(content) > account.largest_message:
        raise _refused(f"it has {len(content)} bytes, account {account.name} allows {account.largest_message}")
    return content


def _refused(why: str) -> NotApplied:
    return NotApplied(f"nothing was sent: the message was refused: {why}", code="message_refused", permanent=True)
