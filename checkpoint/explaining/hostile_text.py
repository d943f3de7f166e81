"""Makes text that an agent, a tool or a provider wrote safe to look at: nothing in it is invisible, nothing is markup.

Escaping alone is not enough for a person who decides: a right-to-left override, a zero-width space or a tag character
makes an argument read as what it is not. Each such character is shown as its code.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator

from django.utils.html import escape, format_html
from django.utils.safestring import SafeString, mark_safe

# Controls but tab and line feed, format and bidi characters, blank letters, fillers, selectors, private use, tags.
_HIDDEN = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f"
    "\u2028-\u202e\u2060-\u206f\u2800\u3164\ufe00-\ufe0e\ufeff\uffa0\ufff0-\uffff\ue000-\uf8ff"
    "\U0001d173-\U0001d17a\U000e0000-\U0010ffff]|\r(?!\n)"
)
_JSON_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*(?:"|\\?\Z)|[{}\[\],:]|[^"{}\[\],:]+', re.DOTALL)
_OPENING, _CLOSING = "{[", "}]"


def visible(text: str) -> SafeString:
    """The text as HTML, with every hidden character written as its code point."""
    pieces, start = [], 0
    for found in _HIDDEN.finditer(text):
        pieces += [escape(text[start : found.start()]), _code(found.group())]
        start = found.end()
    pieces.append(escape(text[start:]))
    return mark_safe("".join(pieces))


def plain(text: str) -> str:
    """The text with every hidden character written as its code point, for places that hold no markup."""
    return _HIDDEN.sub(lambda found: f"[U+{ord(found.group()):04X}]", text)


def without_hidden(text: str) -> str:
    """What of the text can be seen, blanks included."""
    return _HIDDEN.sub("", text)


def _code(character: str) -> SafeString:
    name = unicodedata.name(character, "control or private character")
    return format_html('<span class="hidden-character" title="{}">{}</span>', name, f"U+{ord(character):04X}")


def preview(text: str, length: int) -> SafeString:
    """The first `length` characters, made visible, and how many more there are."""
    shown = visible(text[:length])
    if len(text) <= length:
        return shown
    return format_html('{}<span class="more">… {} more characters</span>', shown, f"{len(text) - length:,}")


def json_lines(text: str) -> Iterator[tuple[int, str]]:
    """Breaks JSON text into lines for the eye: (depth, text). The texts joined are the given text, byte for byte."""
    depth, line = 0, ""
    tokens = _JSON_TOKEN.findall(text)
    for token, following in zip(tokens, [*tokens[1:], ""], strict=False):
        if token in _CLOSING and not line.endswith(tuple(_OPENING)):
            yield from _full(depth, line)
            depth, line = max(depth - 1, 0), ""
        line += token
        if token == "," or (token in _OPENING and following not in _CLOSING):
            yield depth, line
            depth, line = depth + (token in _OPENING), ""
    yield from _full(depth, line)


def _full(depth: int, line: str) -> Iterator[tuple[int, str]]:
    if line:
        yield depth, line
