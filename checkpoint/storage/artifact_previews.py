"""What of an artifact a page shows: the beginning of text, JSON or a picture, by its bytes and not by its name."""

from __future__ import annotations

import codecs
import json
from dataclasses import dataclass
from typing import Literal

from checkpoint.artifacts import CHECKED_FIRST, open_verified
from checkpoint.errors import ArtifactMismatch
from checkpoint.models import Artifact

SHOWN = 64 * 1024  # bytes
LARGEST_PICTURE = 10 * 1024 * 1024  # bytes

# No SVG: it is a document that can hold a program.
_PICTURES = {
    b"\x89PNG\r\n\x1a\n": "image/png",
    b"\xff\xd8\xff": "image/jpeg",
    b"GIF87a": "image/gif",
    b"GIF89a": "image/gif",
}


@dataclass(frozen=True)
class Preview:
    """What is shown.

    Attributes:
        text: of kinds text and json, at most SHOWN bytes of it.
        cut: whether there is more than is shown.
        fault: why nothing can be shown.
    """

    kind: Literal["text", "json", "picture", "none"]
    text: str = ""
    cut: bool = False
    fault: str = ""


def preview(artifact: Artifact) -> Preview:
    """The beginning of the artifact, after all of it was held against its hash."""
    if artifact.size > CHECKED_FIRST:
        return Preview("none", fault="It is too large to be checked before it is shown.")
    try:
        with open_verified(artifact) as stored:
            beginning = stored.read(SHOWN)
    except ArtifactMismatch as error:
        return Preview("none", fault=str(error))
    if picture_type(beginning) and artifact.size <= LARGEST_PICTURE:
        return Preview("picture")
    return _text(beginning, cut=artifact.size > SHOWN)


def picture_type(beginning: bytes) -> str:
    """The media type of a picture that browsers show and do not run, by its first bytes; empty for anything else."""
    if beginning[:4] == b"RIFF" and beginning[8:12] == b"WEBP":
        return "image/webp"
    return next((kind for magic, kind in _PICTURES.items() if beginning.startswith(magic)), "")


def _text(beginning: bytes, *, cut: bool) -> Preview:
    try:
        # Not final where there is more: a character that the cut went through is left out.
        text = codecs.getincrementaldecoder("utf-8")().decode(beginning, final=not cut)
    except UnicodeDecodeError:
        text = "\0"
    if "\0" in text:
        return Preview("none", fault="These bytes are no text.")
    return Preview("json" if not cut and _is_json(text) else "text", text, cut)


def _is_json(text: str) -> bool:
    try:
        return isinstance(json.loads(text), dict | list)
    except (ValueError, RecursionError):
        return False
