"""The catalogue of tools, as the workers published them: what each takes, and what a crash means for it."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_safe

from checkpoint import tool_versions
from checkpoint.canonical import string_problem
from checkpoint.errors import NotFound
from checkpoint.explaining import crash_words
from checkpoint.models import ToolVersion
from checkpoint.pages import page
from checkpoint.turns import live_workers

VERSIONS_SHOWN = 50


@require_safe
def tools(request: HttpRequest) -> HttpResponse:
    """Every tool in the version that is in force."""
    running = live_workers.tools_of_all()
    rows = [(row, _classes(row), str(row) in running) for row in tool_versions.newest_versions().defer("schema")]
    return page(request, "tools.html", "rows", {"rows": rows})


@require_safe
def tool(request: HttpRequest, name: str) -> HttpResponse:
    """One tool: its versions, and of the one in force everything."""
    versions = [] if string_problem(name) else list(_versions(name))
    if not versions:
        raise NotFound("There is no such tool; the catalogue has those that there are.")
    newest = versions[0]
    context = {
        "tool": newest,
        "contracts": _contracts(newest),
        "schema": _json(newest.schema),
        "versions": versions,
        "runs": str(newest) in live_workers.tools_of_all(),
    }
    return page(request, "tool.html", "tool", context)


def _versions(name: str) -> Any:
    return ToolVersion.objects.filter(name=name).order_by("-published_at", "-id")[:VERSIONS_SHOWN]


def _classes(row: ToolVersion) -> list[tuple[str, str, int]]:
    """Recovery class and reversibility of its variants, each pair once, with how many variants have it."""
    pairs = Counter(
        (row.contract(each["name"]).recovery, row.contract(each["name"]).reversibility) for each in row.variants
    )
    return [(recovery, reversibility, number) for (recovery, reversibility), number in pairs.items()]


def _contracts(row: ToolVersion) -> list[dict[str, Any]]:
    """The variants in the order in which they are tried."""
    found = []
    for variant in row.variants:
        contract = row.contract(variant["name"])
        found.append(
            {
                "name": variant["name"],
                "when": _json(variant["when"]) if variant["when"] else "",
                "contract": contract,
                "after_crash": crash_words.after_crash(contract),
                "limits": crash_words.limits(contract),
            }
        )
    return found


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
