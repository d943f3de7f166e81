"""How much work a compiled CEL expression can make: read from its checked tree, before it is ever evaluated.

The runtime bounds nesting (32 levels) and loops (10,000 turns in all), and its regular expressions take linear time.
What it does not bound is how large values get and what one turn costs. So what makes values grow inside loops is
refused, and `Shape.work` counts what is left.

The tree is CEL's published interchange form, `cel.expr.CheckedExpr`, of which a few fields are read here.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

MOST_TURNS = 10_000  # of all loops of one evaluation together; the runtime's own limit
PATTERN_WORK = 300  # a regular expression within the limits below can take so many times as long as a comparison
LONGEST_PATTERN = 200  # characters
MOST_REPEATS = 300  # product of all counted repetitions of a pattern; it is compiled at every evaluation

FUNCTIONS = {
    "contains", "startsWith", "endsWith", "matches", "size", "string", "int", "double", "timestamp", "duration",
}  # fmt: skip
_OPERATORS = {
    "_&&_", "_||_", "!_", "_==_", "_!=_", "_<_", "_<=_", "_>_", "_>=_", "_+_", "_-_", "_*_", "_/_", "_%_", "-_",
    "_?_:_", "_[_]", "@in", "@not_strictly_false",
}  # fmt: skip

_REPEATS = re.compile(r"\{(\d+)(?:,(\d*))?\}")
_LOOP_STEPS = {"_&&_", "_||_"}  # what the macros all and exists turn into; map, filter and exists_one add up

_CONST, _IDENT, _SELECT, _CALL, _LIST, _STRUCT, _LOOP = range(3, 10)  # members of cel.expr.Expr's "kind"
_Field = tuple[int, int | bytes]
_OVERHEAD = 100  # comparisons that calling an operation is worth

Path = tuple[str, ...]
_Read = tuple[frozenset[Path], int]  # what a subtree looks at without binding it, and how deep its loops are


@dataclass
class Shape:
    """What was counted.

    Attributes:
        nodes: operations, constants and names.
        patterns: regular expressions.
        loops: whether there are any.
        grows: whether it adds anything, be it numbers, strings or lists.
        longest_list: of those written in the expression.
        depth: loops inside one another whose body looks at something else than the element.
        outer: what these look at: a variable, then the members by which a value in it is reached.
    """

    nodes: int = 0
    patterns: list[str] = field(default_factory=list)
    longest_list: int = 0
    depth: int = 0
    outer: set[Path] = field(default_factory=set)
    loops: bool = False
    grows: bool = False

    def work(self, *, size: int, longest: int, outer: int) -> int:
        """Upper bound of the work of one evaluation, in comparisons of one character.

        A loop whose body looks at nothing but its element looks at each character once.

        Args:
            size: characters of the arguments' JSON.
            longest: members of the largest object or array in them.
            outer: characters of all that loops look at besides their elements.
        """
        turns = int(min(math.pow(max(longest, self.longest_list, 1), self.depth), MOST_TURNS)) if self.depth else 0
        looked_at = size + _OVERHEAD + turns * (outer + _OVERHEAD)
        return (self.nodes + PATTERN_WORK * len(self.patterns)) * looked_at


def shape_of(serialized: bytes, *, small: frozenset[str]) -> Shape:
    """The shape of a serialized checked expression.

    Args:
        small: variables that are always short, so that a loop may look at them.

    Raises:
        ValueError: it uses what conditions must not use; the message says what and what is available.
    """
    reader = _Reader(Shape(), small)
    checked = dict(_fields(_bytes(dict(_fields(serialized))[2])))
    reader.read(_bytes(checked[4]))
    if reader.shape.loops and reader.shape.grows:
        raise ValueError("+ cannot be used together with all and exists")
    return reader.shape


@dataclass
class _Reader:
    shape: Shape
    small: frozenset[str]

    def read(self, node: bytes) -> _Read:
        """Counts a subtree."""
        self.shape.nodes += 1
        kind, body = next((kind, _bytes(value)) for kind, value in _fields(node) if kind in range(_CONST, _LOOP + 1))
        members = list(_fields(body))
        if kind == _IDENT:
            return frozenset({(_text(members[0][1]),)}), 0
        if kind == _SELECT:
            return self._select(members)
        if kind == _STRUCT:
            raise ValueError("objects cannot be written in a condition")
        if kind == _LOOP:
            return self._loop(members)
        return self._children(kind, members)

    def _select(self, members: list[_Field]) -> _Read:
        """A member: what is looked at is what it holds, where that is reached by names alone."""
        parts = dict(members)
        operand = _bytes(parts[1])
        paths, depth = self.read(operand)
        reached = _kind(operand) in (_IDENT, _SELECT) and len(paths) == 1
        return (frozenset((*path, _text(parts[2])) for path in paths) if reached else paths), depth

    def _children(self, kind: int, members: list[_Field]) -> _Read:
        if kind == _CALL:
            self._call(members)
        if kind == _LIST:
            self._list(members)
        inner = {_CALL: (1, 3), _LIST: (1,)}.get(kind, ())
        return _together(self.read(_bytes(value)) for number, value in members if number in inner)

    def _call(self, members: list[_Field]) -> None:
        name = next(_text(value) for number, value in members if number == 2)
        if name not in FUNCTIONS | _OPERATORS:
            raise ValueError(f"{name} cannot be used; there are {', '.join(sorted(FUNCTIONS))}, all and exists")
        self.shape.grows |= name == "_+_"
        if name == "matches":
            pattern = _constant(_bytes(members[-1][1]))
            if pattern is None:
                raise ValueError("the pattern of matches must be written out, in quotes")
            _check_pattern(pattern)
            self.shape.patterns.append(pattern)

    def _list(self, members: list[_Field]) -> None:
        if any(number == 1 and _kind(_bytes(value)) != _CONST for number, value in members):
            raise ValueError("a list in a condition may hold constants only")
        self.shape.longest_list = max(self.shape.longest_list, len(members))

    def _loop(self, members: list[_Field]) -> _Read:
        """A loop over a range; its body is turned once for each element."""
        self.shape.loops = True
        parts = dict(members)
        if _function(_bytes(parts[6])) not in _LOOP_STEPS:
            raise ValueError("of loops there are only all and exists")
        bound = {_text(parts[number]) for number in (1, 3, 8) if number in parts}
        within = self.read(_bytes(parts[2]))
        body, depth = _together(self.read(_bytes(parts[number])) for number in (4, 5, 6, 7))
        free = frozenset(path for path in body if path[0] not in bound)
        outer = {path for path in free if path[0] not in self.small}
        self.shape.outer |= outer
        depth += bool(outer)
        self.shape.depth = max(self.shape.depth, depth)
        return _together([within, (free, depth)])


def _together(read: Iterable[_Read]) -> _Read:
    paths, depths = zip(*read, strict=True) if (read := list(read)) else ((), ())
    return frozenset().union(*paths), max(depths, default=0)


def _function(node: bytes) -> str:
    """The operation at the top of a subtree; empty where it is none."""
    call = dict(_fields(node)).get(_CALL)
    return _text(dict(_fields(_bytes(call)))[2]) if call is not None else ""


def _check_pattern(pattern: str) -> None:
    if len(pattern) > LONGEST_PATTERN:
        raise ValueError(f"a pattern has {len(pattern)} characters; the limit is {LONGEST_PATTERN}")
    repeats = math.prod(max(int(least), int(most or 0)) for least, most in _REPEATS.findall(pattern))
    if repeats > MOST_REPEATS:
        raise ValueError(f"a pattern repeats up to {repeats} times; the limit is {MOST_REPEATS}")
    if re.search(r"\\[pP]", pattern):
        raise ValueError("\\p and \\P cannot be used in patterns; write the characters in brackets")


def _kind(node: bytes) -> int:
    return next(kind for kind, _ in _fields(node) if kind in range(_CONST, _LOOP + 1))


def _constant(node: bytes) -> str | None:
    """The text of a string constant (field 6 of cel.expr.Constant)."""
    constant = dict(_fields(node)).get(_CONST)
    text = dict(_fields(_bytes(constant))).get(6, b"") if constant is not None else None
    return _text(text) if isinstance(text, bytes) else None


def _fields(message: bytes) -> Iterator[_Field]:
    """The fields of a protobuf message, by number."""
    at = 0
    while at < len(message):
        key, at = _varint(message, at)
        wire = key & 7
        if wire == 0:
            value, at = _varint(message, at)
            yield key >> 3, value
            continue
        length, at = _varint(message, at) if wire == 2 else ({1: 8, 5: 4}[wire], at)
        yield key >> 3, message[at : at + length]
        at += length


def _varint(message: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = message[at]
        at += 1
        value |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            return value, at


def _bytes(value: int | bytes) -> bytes:
    assert isinstance(value, bytes)
    return value


def _text(value: int | bytes) -> str:
    return _bytes(value).decode()
