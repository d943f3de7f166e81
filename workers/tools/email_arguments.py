"""The arguments of `email.send`. No header can be named, and none of what becomes one can hold a line break."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field

from workers.tools.http_arguments import Model

LARGEST_TEXT = 256 * 1024  # characters; all arguments of a step together have at most so many bytes
MOST_ADDRESSES = 100  # RFC 5321 section 4.5.3.1.8: what every server has to take

_END = r"$(?!\n)"
_WORD = r"[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+"
_LABEL = r"[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?"
ADDRESS = rf"^(?=[^@]{{1,64}}@){_WORD}(?:\.{_WORD})*@{_LABEL}(?:\.{_LABEL})*{_END}"
# No control characters, and no other characters at which some program breaks a line.
# Nor "=?": a reader of mail would decode what stands behind it into another text than the one that was approved.
_LINE = rf"^(?!.*=\?)(?!\s)[^\x00-\x1f\x7f-\x9f\u2028\u2029]+(?<!\s){_END}"
_FILE_NAME = rf"^[^\x00-\x1f\x7f-\x9f\u2028\u2029/\\]+{_END}"
_MEDIA_TYPE = rf"^(?!multipart/|message/)[a-z]+/[a-z0-9][a-z0-9.+-]*{_END}"
_BASE64 = rf"^[A-Za-z0-9+/]*={{0,2}}{_END}"


def _text(pattern: str, longest: int, must_be: str) -> Any:
    return Field(pattern=pattern, min_length=1, max_length=longest, json_schema_extra={"x-must-be": must_be})


Address = Annotated[str, _text(ADDRESS, 254, 'an address like "dana@example.com", in ASCII, without a name beside it')]
Line = Annotated[str, _text(_LINE, 255, 'one line of text without control characters, "=?" and spaces around it')]
Addresses = Annotated[list[Address], Field(max_length=MOST_ADDRESSES)]


class Attachment(Model):
    """A file that goes along. The content is base64."""

    name: Annotated[str, _text(_FILE_NAME, 128, "a file's name, without a folder and control characters")]
    media_type: Annotated[str, _text(_MEDIA_TYPE, 100, 'a media type like "application/pdf"')] = (
        "application/octet-stream"
    )
    content: Annotated[str, _text(_BASE64, LARGEST_TEXT, "base64 on one line")]


class EmailArguments(Model):
    """One message from an account on the operator's list; it reaches all of its recipients or none."""

    account: Annotated[str, _text(rf"^[a-z][a-z0-9-]*{_END}", 32, "an account's name: a-z, then a-z, 0-9 and -")]
    to: Annotated[list[Address], Field(min_length=1, max_length=MOST_ADDRESSES)]
    cc: Addresses = []
    bcc: Addresses = []
    reply_to: Address | None = None
    subject: Line
    text: Annotated[str, Field(min_length=1, max_length=LARGEST_TEXT)]
    html: Annotated[str, Field(max_length=LARGEST_TEXT)] = ""
    attachments: Annotated[list[Attachment], Field(max_length=10)] = []

    def recipients(self) -> list[str]:
        """Every address once, in order."""
        return list(dict.fromkeys([*self.to, *self.cc, *self.bcc]))
