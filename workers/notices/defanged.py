"""Words of others, made safe for mail programs and chats: nothing hidden, no markup, nothing that turns into a link.

Programs make links of plain text by themselves: of `https://…`, of `www.…`, of any `name.tld`, of addresses. So such
text is written with brackets, as security people write it.
"""

from __future__ import annotations

import re

from checkpoint.explaining import hostile_text

# A decimal number stays as it is; of everything else, a scheme's "://" and each dot (as IDNA reads dots) inside a word.
_PIECE = re.compile(r"(?P<kept>(?<![\w.])\d+\.\d+(?!\.?\w))|(?P<scheme>://)|(?<=\S)[.\u3002\uff0e\uff61](?=\S)")
_SPACES = re.compile(r"\s+")


def defanged(text: str) -> str:
    """The text on as many lines as it has, harmless wherever it is shown as text."""
    return _PIECE.sub(_harmless, hostile_text.plain(text.replace("\r\n", "\n")))


def one_line(text: str) -> str:
    """As `defanged`, on one line."""
    return _SPACES.sub(" ", defanged(text)).strip()


def _harmless(found: re.Match[str]) -> str:
    if found["kept"]:
        return found.group()
    return "[:]//" if found["scheme"] else "[.]"
