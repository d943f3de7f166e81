#!/usr/bin/env python3
"""Checks an export of the audit. Needs this file, Python 3.10 or newer, and nothing else: no package, no database.

    python3 verify_export.py EXPORT [--key HEX] [--anchor FILE]

EXPORT is JSON Lines or CSV, as the console's audit page or `manage.py export_audit` writes it. Checked are: that every
entry's text has the hash that stands beside it and names the hash of the entry before it; that numbers have no gaps;
that anchors are signed and that the chains reach, unchanged, the heads that they name; that the file is complete.

--key     the only public key that may have signed: note it down when the installation begins. Without it this says
          which key signed, and whether that is the right one is yours to know.
--anchor  an anchor that was kept elsewhere (`manage.py anchor_audit --output FILE`): the export must agree with it.

Exit codes: 0 intact, 1 something is broken (the first broken place is named), 2 the file cannot be read as an export.
The format is described in docs/audit.md. All of it is in one file, so that it can be handed over alone.
"""

from __future__ import annotations

import argparse
import csv
import hashlib
import json
import sys
from collections.abc import Iterable, Iterator
from typing import Any

FORM = "checkpoint-audit/1"
FIRST_HASH = "0" * 64
READABLE = ("at", "actor", "channel", "verb", "subject", "before", "after", "reason", "request")
FORMULA = tuple("=+-@\t\r\n\uff1d\uff0b\uff0d\uff20")


class Broken(Exception):
    """Something in the file is not what it should be."""


class NoExport(Exception):
    """The file is not an export at all."""


# --- Reading: each record as a dict with "record", its kind


def read(path: str) -> Iterator[tuple[int, dict[str, Any]]]:
    """The records with their line numbers; for CSV the number of the row."""
    try:
        with open(path, encoding="utf-8-sig", newline="") as stream:
            is_json = stream.read(1) == "{"
            stream.seek(0)
            yield from read_json_lines(stream) if is_json else read_csv(stream)
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise NoExport(f"{path} cannot be read: {error}") from error


def read_json_lines(stream: Iterable[str]) -> Iterator[tuple[int, dict[str, Any]]]:
    for number, line in enumerate(stream, start=1):
        try:
            record = json.loads(line)
        except ValueError:
            raise Broken(f"line {number} is not whole: the file was cut or changed") from None
        if not isinstance(record, dict):
            raise Broken(f"line {number} is no record")
        yield number, record


def read_csv(stream: Iterable[str]) -> Iterator[tuple[int, dict[str, Any]]]:
    csv.field_size_limit(2**31 - 1)
    for number, row in enumerate(csv.DictReader(stream), start=2):
        if None in row or None in row.values():
            raise Broken(f"row {number} has another number of cells: the file was cut or changed")
        record: dict[str, Any] = {name: value for name, value in row.items() if value != ""}
        try:
            if record.get("record") in {"export", "end"}:
                record |= json.loads(record.pop("text"))
            for name in {"seq", "anchor"} & record.keys():
                record[name] = int(record[name])
        except (ValueError, KeyError):
            raise Broken(f"row {number} is no record") from None
        if record.get("record") == "entry":
            check_copies(row, number)
        yield number, record


def check_copies(row: dict[str, str], number: int) -> None:
    """The columns that people read must say what the text says."""
    try:
        content = json.loads(row["text"])
    except ValueError:
        return  # the hash of the text will say it
    for name in READABLE:
        said = str(content.get(name, ""))
        if row[name] != ("'" + said if said.startswith(FORMULA) else said):
            raise Broken(f"row {number}: the column “{name}” does not say what the text says")


# --- Checking


class Verifier:
    """Takes the records in their order. Raises Broken at the first that does not fit."""

    def __init__(self, trusted_key: str, kept: dict[str, Any] | None) -> None:
        self.trusted_key = trusted_key
        self.kept = kept
        self.header: dict[str, Any] = {}
        self.counted = dict.fromkeys(("anchor", "head", "entry", "left_out"), 0)
        self.keys: set[str] = set()
        self.expected: dict[tuple[str, int], tuple[str, int]] = {}  # hash and anchor by stream and number
        self.anchor: dict[str, Any] = {}  # the one whose list of heads is being read
        self.heads: list[tuple[str, int, str]] = []
        self.last_anchor: tuple[int, str] = (0, FIRST_HASH)
        self.streams: set[str] = set()
        self.stream, self.seq, self.previous = "", 0, FIRST_HASH
        self.ended = False

    def run(self, records: Iterable[tuple[int, dict[str, Any]]]) -> None:
        """Checks the whole file."""
        take = {"anchor": self.take_anchor, "head": self.take_head, "entry": self.take_entry}
        take |= {"left_out": self.take_entry, "end": self.take_end}
        for number, record in records:
            if not self.header:
                self.begin(record)
                continue
            kind = record.get("record")
            if self.ended or kind not in take:
                raise Broken(f"line {number}: there should be no record {kind!r} here")
            try:
                take[kind](record)
            except Broken as broken:
                raise Broken(f"line {number}: {broken}") from None
            except (KeyError, ValueError, TypeError, AttributeError):
                raise Broken(f"line {number}: the record of kind {kind!r} lacks a member or has a wrong one") from None
        if not self.header:
            raise NoExport("the file is empty")
        if not self.ended:
            raise Broken("the file has no end: it was cut, or its download was")

    def begin(self, record: dict[str, Any]) -> None:
        if record.get("record") != "export" or record.get("form") != FORM:
            raise NoExport(f"this is no export in the form {FORM}")
        self.header = record
        if self.kept is not None:
            try:
                self.expect_kept(self.kept)
            except (KeyError, ValueError, TypeError):
                raise NoExport("the kept anchor lacks a member or has a wrong one") from None

    def expect_kept(self, kept: dict[str, Any]) -> None:
        content = self.signed(kept)
        heads = [(str(stream), int(seq), str(hash_)) for stream, seq, hash_ in kept["heads"]]
        if heads_hash(heads) != content["heads"]:
            raise Broken("the kept anchor's list of heads is not the one that was signed")
        self.expect(heads, content["anchor"])

    def signed(self, anchor: dict[str, Any]) -> dict[str, Any]:
        """The members of an anchor's text, which its key has signed."""
        text, content = anchor["text"], json.loads(anchor["text"])
        name = f"anchor {content['anchor']}"
        if sha256(text) != anchor["hash"]:
            raise Broken(f"{name}: the text does not match its hash")
        if not ed25519_verify(bytes.fromhex(content["key"]), text.encode(), bytes.fromhex(anchor["signature"])):
            raise Broken(f"{name}: the signature is not that of the key that it names")
        if self.trusted_key and content["key"] != self.trusted_key:
            raise Broken(f"{name}: it was signed with the key {content['key']}")
        self.keys.add(content["key"])
        return dict(content)

    def take_anchor(self, record: dict[str, Any]) -> None:
        self.finish_anchor()
        content = self.signed(record)
        number, name = content["anchor"], f"anchor {content['anchor']}"
        if self.streams or number <= self.last_anchor[0]:
            raise Broken(f"{name}: it stands in the wrong place")
        if number == self.last_anchor[0] + 1 and content["previous"] != self.last_anchor[1]:
            raise Broken(f"{name}: it does not follow the anchor before it")
        if self.kept and number == self.kept["anchor"] and record["hash"] != self.kept["hash"]:
            raise Broken(f"{name}: it is not the one that was kept")
        self.anchor, self.heads, self.last_anchor = content, [], (number, record["hash"])
        self.counted["anchor"] += 1

    def take_head(self, record: dict[str, Any]) -> None:
        if record["anchor"] != self.anchor.get("anchor"):
            raise Broken("a head stands under another anchor")
        self.heads.append((record["stream"], record["seq"], record["hash"]))
        self.counted["head"] += 1

    def finish_anchor(self) -> None:
        """The list of an anchor's heads is over."""
        if not self.anchor:
            return
        if heads_hash(self.heads) != self.anchor["heads"]:
            raise Broken(f"anchor {self.anchor['anchor']}: its list of heads is not the one that was signed")
        self.expect(self.heads, self.anchor["anchor"])
        self.anchor = {}

    def expect(self, heads: list[tuple[str, int, str]], anchor: int) -> None:
        for stream, seq, hash_ in heads:
            other = self.expected.setdefault((stream, seq), (hash_, anchor))
            if other[0] != hash_:
                raise Broken(f"anchors {other[1]} and {anchor} name different hashes of {stream}, entry {seq}")

    def take_entry(self, record: dict[str, Any]) -> None:
        """An entry, or the number and hash of one that the filter leaves out."""
        self.finish_anchor()
        stream, seq, hash_ = record["stream"], record["seq"], record["hash"]
        if stream != self.stream:
            if stream in self.streams:
                raise Broken(f"stream {stream} is here twice")
            self.streams.add(stream)
            self.stream, self.seq, self.previous = stream, 0, FIRST_HASH
        place = f"stream {stream}, entry {seq}"
        if seq != self.seq + 1:
            raise Broken(f"{place}: entry {self.seq + 1} is missing")
        if record["record"] == "entry":
            self.check_text(record["text"], hash_, place)
        hash_stated, anchor = self.expected.pop((stream, seq), (hash_, 0))
        if hash_stated != hash_:
            raise Broken(f"{place}: anchor {anchor} states another hash: the chain was rewritten")
        self.seq, self.previous = seq, hash_
        self.counted[record["record"]] += 1

    def check_text(self, text: str, hash_: str, place: str) -> None:
        if sha256(text) != hash_:
            raise Broken(f"{place}: the text does not match its hash")
        content = json.loads(text)
        if (content["stream"], content["seq"], content["previous"]) != (self.stream, self.seq + 1, self.previous):
            raise Broken(f"{place}: the text does not follow the entry before it")

    def take_end(self, record: dict[str, Any]) -> None:
        self.finish_anchor()
        if {name: record.get(name) for name in self.counted} != self.counted:
            raise Broken("the end counts other records than there are: lines were taken away or added")
        self.ended = True
        asked = self.header.get("filter") or {}
        for (stream, seq), (_, anchor) in self.expected.items():
            if not asked or stream in self.streams or stream == asked.get("stream"):
                raise Broken(f"stream {stream}: anchor {anchor} states entry {seq}, which is missing: its tail was cut")


def sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def heads_hash(heads: Iterable[tuple[str, int, str]]) -> str:
    return sha256("".join(f"{stream} {seq} {hash_}\n" for stream, seq, hash_ in heads))


# --- Ed25519 (RFC 8032, section 6), verification only. Slow, some 5 ms for each signature, and nothing is secret here.

P = 2**255 - 19
ORDER = 2**252 + 27742317777372353535851937790883648493
D = -121665 * pow(121666, P - 2, P) % P
ROOT_OF_MINUS_ONE = pow(2, (P - 1) // 4, P)
Point = tuple[int, int, int, int]  # extended coordinates
NEUTRAL: Point = (0, 1, 1, 0)


def add(a: Point, b: Point) -> Point:
    left, right = (a[1] - a[0]) * (b[1] - b[0]) % P, (a[1] + a[0]) * (b[1] + b[0]) % P
    c, d = 2 * a[3] * b[3] * D % P, 2 * a[2] * b[2] % P
    e, f, g, h = right - left, d - c, d + c, right + left
    return (e * f % P, g * h % P, f * g % P, e * h % P)


def multiply(factor: int, point: Point) -> Point:
    product = NEUTRAL
    while factor > 0:
        if factor & 1:
            product = add(product, point)
        point = add(point, point)
        factor >>= 1
    return product


def equal(a: Point, b: Point) -> bool:
    return (a[0] * b[2] - b[0] * a[2]) % P == 0 and (a[1] * b[2] - b[1] * a[2]) % P == 0


def recover_x(y: int, sign: int) -> int | None:
    if y >= P:
        return None
    square = (y * y - 1) * pow(D * y * y + 1, P - 2, P) % P
    if square == 0:
        return None if sign else 0
    x = pow(square, (P + 3) // 8, P)
    if (x * x - square) % P != 0:
        x = x * ROOT_OF_MINUS_ONE % P
    if (x * x - square) % P != 0:
        return None
    return P - x if x & 1 != sign else x


def decompress(data: bytes) -> Point | None:
    y = int.from_bytes(data, "little")
    sign, y = y >> 255, y & ((1 << 255) - 1)
    x = recover_x(y, sign)
    return None if x is None else (x, y, 1, x * y % P)


BASE = decompress((4 * pow(5, P - 2, P) % P).to_bytes(32, "little"))


def ed25519_verify(public: bytes, message: bytes, signature: bytes) -> bool:
    if len(public) != 32 or len(signature) != 64:
        return False
    a, r, s = decompress(public), decompress(signature[:32]), int.from_bytes(signature[32:], "little")
    if a is None or r is None or BASE is None or s >= ORDER:
        return False
    digest = hashlib.sha512(signature[:32] + public + message).digest()
    return equal(multiply(s, BASE), add(r, multiply(int.from_bytes(digest, "little") % ORDER, a)))


# --- The command


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("export")
    parser.add_argument("--key", default="")
    parser.add_argument("--anchor")
    options = parser.parse_args(arguments)
    try:
        verifier = Verifier(options.key.strip().lower(), read_kept(options.anchor) if options.anchor else None)
        verifier.run(read(options.export))
    except NoExport as error:
        print(f"Not checked: {error}", file=sys.stderr)
        return 2
    except Broken as broken:
        print(f"BROKEN: {broken}", file=sys.stderr)
        return 1
    print(summary(verifier))
    return 0


def read_kept(path: str) -> dict[str, Any]:
    try:
        with open(path, encoding="utf-8") as stream:
            kept = json.load(stream)
    except (OSError, ValueError) as error:
        raise NoExport(f"{path} cannot be read as an anchor: {error}") from error
    if not isinstance(kept, dict) or not {"anchor", "text", "hash", "signature", "heads"} <= kept.keys():
        raise NoExport(f"{path} is no anchor as `manage.py anchor_audit --output` writes it")
    return kept


def summary(verifier: Verifier) -> str:
    counted, header = verifier.counted, verifier.header
    lines = [
        f"Intact: {counted['entry']} entries and the places of {counted['left_out']} left out.",
        f"{len(verifier.streams)} streams, exported {header.get('at')} by {header.get('by')}.",
        f"Filter: {json.dumps(header.get('filter') or 'none')}.",
    ]
    if verifier.keys:
        keys = ", ".join(sorted(verifier.keys))
        known = "as expected" if verifier.trusted_key else "compare it with the one that you noted down"
        lines.append(f"{counted['anchor']} anchors agree, signed with the key {keys} ({known}).")
    else:
        lines.append("No anchor names these streams: a tail that was cut before the export would not be noticed.")
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
