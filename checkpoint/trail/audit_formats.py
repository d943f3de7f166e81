"""An export's records as text: JSON Lines for programs, CSV for people with a spreadsheet. `docs/audit.md` has both."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from checkpoint.trail.audit_export import Record

COLUMNS = (
    *("record", "stream", "seq", "hash", "at", "actor", "channel", "verb", "subject", "before", "after", "reason"),
    *("request", "text", "anchor", "signature"),
)
# Copied from the text so that people can read them; `text` is what was hashed.
_READABLE = ("at", "actor", "channel", "verb", "subject", "before", "after", "reason", "request")
# A spreadsheet takes a cell that begins so for a formula. The last four are the same signs at full width.
_FORMULA = tuple("=+-@\t\r\n＝＋－＠")  # noqa: RUF001 (they are meant)
_BYTE_ORDER_MARK = "\ufeff"  # by which spreadsheets know UTF-8


def json_lines(records: Iterable[Record]) -> Iterator[str]:
    """One JSON object a line, with the record's kind and its members."""
    for record in records:
        yield json.dumps({"record": record.kind, **record.values}, ensure_ascii=False) + "\n"


def csv_lines(records: Iterable[Record]) -> Iterator[str]:
    """RFC 4180 with a row of COLUMNS first. No cell is a formula."""
    line = io.StringIO()
    writer = csv.DictWriter(line, COLUMNS, restval="")
    writer.writeheader()
    yield _BYTE_ORDER_MARK + line.getvalue()
    for record in records:
        line.seek(0)
        line.truncate()
        writer.writerow(_cells(record))
        yield line.getvalue()


def _cells(record: Record) -> dict[str, Any]:
    values: dict[str, Any] = {"record": record.kind}
    if record.kind in {"export", "end"}:
        return {**values, "text": json.dumps(record.values, ensure_ascii=False)}
    if record.kind == "entry":
        values |= {name: harmless(value) for name, value in _readable(record.values["text"]).items()}
    return values | record.values


def _readable(text: str) -> dict[str, str]:
    """The columns for people; none where the text was damaged, which its hash says."""
    try:
        content = json.loads(text)
        return {name: str(content[name]) for name in _READABLE if name in content}
    except (ValueError, TypeError):
        return {}


def harmless(text: str) -> str:
    """The text as a cell that no spreadsheet takes for a formula."""
    return f"'{text}" if text.startswith(_FORMULA) else text


FORMATS: dict[str, Callable[[Iterable[Record]], Iterator[str]]] = {"jsonl": json_lines, "csv": csv_lines}
CONTENT_TYPES = {"jsonl": "application/x-ndjson; charset=utf-8", "csv": "text/csv; charset=utf-8"}
