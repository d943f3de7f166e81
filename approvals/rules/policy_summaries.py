"""What changes from one policy to another: as text, and for each tool. Plain Python."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, fields, replace

from approvals.policies import PolicyDocument, PolicyRule, When
from checkpoint.contracts import Reversibility
from checkpoint.planning.plan_steps import PublishedTool

CONTEXT = 3  # unchanged lines around a change
EVERY_TOOL = "every tool"


@dataclass(frozen=True)
class ToolChange:
    """What two policies say differently about tools, whatever the workflow and the arguments.

    Attributes:
        tools: a tool and what undoing its effect takes, in words.
        removed: what the first policy says and the second does not.
        added: what the second says and the first does not; where both are empty, the rules apply in another order.
    """

    tools: tuple[str, ...]
    removed: tuple[str, ...]
    added: tuple[str, ...]


@dataclass(frozen=True)
class Row:
    """One line of two texts side by side; a number is 0 where that side has no line."""

    kind: str  # "same", "removed", "added", "changed", "gap"
    old_number: int = 0
    old: str = ""
    new_number: int = 0
    new: str = ""


def unified(old: str, new: str, *, old_name: str, new_name: str) -> list[str]:
    """The differences as `diff -u` writes them."""
    return list(difflib.unified_diff(old.splitlines(), new.splitlines(), old_name, new_name, n=CONTEXT, lineterm=""))


def side_by_side(old: str, new: str) -> list[Row]:
    """The changed lines of both texts with a few unchanged ones around them; empty where nothing changed."""
    before, after = old.splitlines(), new.splitlines()
    groups = difflib.SequenceMatcher(None, before, after, autojunk=False).get_grouped_opcodes(CONTEXT)
    rows: list[Row] = []
    for group in groups:
        if rows:
            rows.append(Row("gap"))
        for tag, old_from, old_to, new_from, new_to in group:
            rows += _rows(tag, before, range(old_from, old_to), after, range(new_from, new_to))
    return rows


def _rows(tag: str, before: list[str], old: range, after: list[str], new: range) -> Iterator[Row]:
    for index in range(max(len(old), len(new))):
        left = (old[index] + 1, before[old[index]]) if index < len(old) else (0, "")
        right = (new[index] + 1, after[new[index]]) if index < len(new) else (0, "")
        kind = "same" if tag == "equal" else "added" if not left[0] else "removed" if not right[0] else "changed"
        yield Row(kind, *left, *right)


def tool_changes(before: PolicyDocument, after: PolicyDocument, tools: Iterable[PublishedTool]) -> list[ToolChange]:
    """What changes for every tool, then for each; tools for which the same changes stand together."""
    old, new = _defaults(before), _defaults(after)
    changes = [ToolChange((EVERY_TOOL,), _only_in(old, new), _only_in(new, old))] if old != new else []
    found: dict[tuple[tuple[str, ...], tuple[str, ...]], list[str]] = {}
    for tool in sorted(tools, key=lambda each: each.name):
        for reversibility in _kinds(tool):
            old, new = _lines(before, tool.name, reversibility), _lines(after, tool.name, reversibility)
            if old != new:
                change = _only_in(old, new), _only_in(new, old)
                found.setdefault(change, []).append(f"{tool.name} ({reversibility.replace('_', ' ')})")
    return changes + [ToolChange(tuple(names), removed, added) for (removed, added), names in found.items()]


def _defaults(document: PolicyDocument) -> list[str]:
    return [f"defaults: {each.name} {getattr(document.budgets, each.name):g}" for each in fields(document.budgets)]


def _only_in(these: list[str], others: list[str]) -> tuple[str, ...]:
    return tuple(line for line in these if line not in others)


def _kinds(tool: PublishedTool) -> list[Reversibility]:
    declared = {variant["contract"]["reversibility"] for variant in tool.variants}
    return [each for each in Reversibility if each in declared]


def _lines(document: PolicyDocument, tool: str, reversibility: Reversibility) -> list[str]:
    """All that the policy can say about such a step, a line for each rule."""
    return [_line(each) for each in document.rules if _could_match(each.when, tool, reversibility)]


def _could_match(when: When, tool: str, reversibility: Reversibility) -> bool:
    """Whether there can be a workflow in which the rule applies to such a step."""
    return replace(when, kinds=(), teams=()).matches(tool, reversibility, "", "")


def _line(each: PolicyRule) -> str:
    when = each.when
    narrowed = [
        *([f"kind {' or '.join(when.kinds)}"] if when.kinds else []),
        *([f"team {' or '.join(when.teams)}"] if when.teams else []),
        *([f"if {when.condition.text}"] if when.condition else []),
    ]
    return f"“{each.name}” sets {', '.join(each.changes.words)}{f' [{", ".join(narrowed)}]' if narrowed else ''}"
