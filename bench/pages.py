"""Asks for every page many times and prints how long the server took; keeps the plans of the slowest statements."""

from __future__ import annotations

import os
import statistics
import time
from pathlib import Path
from typing import Any

import django

django.setup()

from django.contrib.auth.models import Group, User  # noqa: E402
from django.db import connection, transaction  # noqa: E402
from django.test import Client  # noqa: E402
from django.test.utils import CaptureQueriesContext  # noqa: E402

from checkpoint.models import Case, Team, Workflow  # noqa: E402

TIMES = int(os.environ.get("BIG_TIMES", "40"))
LIMIT = 0.1  # seconds
PLANS = Path(os.environ.get("BIG_PLANS", "bench/plans"))


def pages() -> dict[str, str]:
    """Every kind of page, by name."""
    case = Case.objects.filter(status="open").latest("id")
    old = Workflow.objects.filter(pk__lt=case.workflow_id).order_by("-id")[50]
    waiting = Case.objects.filter(status="open").order_by("opened_at")
    after = waiting[waiting.count() // 2].pk
    return {
        "review": "/review/",
        "review, second page": f"/review/?after={after}",
        "review, searched": "/review/?search=photographs+refund",
        "review, searched in vain": "/review/?search=nothing-like-it",
        "review, mine": "/review/?list=mine",
        "done": "/review/?list=done",
        "done, searched in vain": "/review/?list=done&search=nothing-like-it",
        "case": f"/cases/{case.pk}/",
        "overview": "/overview/",
        "workflows": "/workflows/",
        "workflows, older": f"/workflows/?before={old.pk}",
        "workflows, abandoned": "/workflows/?status=abandoned",
        "workflows, asked": "/workflows/?asked=1",
        "workflows, searched": "/workflows/?search=order+7731",
        "workflow": f"/workflows/{old.pk}/",
        "times": f"/workflows/{old.pk}/times/",
        "artifacts": f"/workflows/{old.pk}/artifacts/",
        "audit": "/audit/",
        "audit of an actor": "/audit/?actor=workers",
        "audit, searched in vain": "/audit/?words=nothing-like-it",
        "tools": "/tools/",
        "tool": "/tools/bench.noop/",
        "policies": "/policies/",
        "bulk jobs": "/bulk-jobs/",
        "notices": "/notices/",
    }


def people() -> dict[str, User]:
    """Somebody of one team who decides, and somebody who sees everything."""
    decider = User.objects.create_user("bench-decider")
    decider.groups.set(Group.objects.filter(name__in=["Approver", "Operator"]))
    Team.objects.get(slug="big-1").members.add(decider)
    auditor = User.objects.create_user("bench-auditor")
    auditor.groups.set(Group.objects.filter(name__in=["Auditor", "Admin"]))
    return {"one team": decider, "everything": auditor}


def measured(client: Client, address: str) -> tuple[list[float], int]:
    """Seconds of each request, and the status."""
    status, seconds = client.get(address).status_code, []
    for _ in range(TIMES):
        begun = time.perf_counter()
        client.get(address)
        seconds.append(time.perf_counter() - begun)
    return seconds, status


def keep_plan(client: Client, name: str, address: str) -> str:
    """Writes the plan of the page's slowest statement; returns what it took."""
    with CaptureQueriesContext(connection) as captured:
        client.get(address)
    slowest: dict[str, Any] = max(captured.captured_queries, key=lambda query: float(query["time"]))
    if not slowest["sql"].startswith("SELECT"):
        return slowest["time"]
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("EXPLAIN (ANALYZE, BUFFERS) " + slowest["sql"].replace("%", "%%"), [])
        plan = "\n".join(line for (line,) in cursor.fetchall())
    PLANS.mkdir(parents=True, exist_ok=True)
    (PLANS / f"{name.replace(', ', '-').replace(' ', '-')}.txt").write_text(f"{slowest['sql']}\n\n{plan}\n")
    return str(slowest["time"])


def main() -> None:
    """Prints a line for each page and person."""
    found = pages()
    for who, person in people().items():
        client = Client(SERVER_NAME="localhost")  # not Django's test environment, which copies contexts at each include
        client.force_login(person)
        for name, address in found.items():
            seconds, status = measured(client, address)
            p95 = statistics.quantiles(seconds, n=20)[-1]
            slowest = keep_plan(client, f"{name}, {who}", address)
            times = f"p95 {p95 * 1000:6.1f} ms, median {statistics.median(seconds) * 1000:6.1f} ms"
            mark = "  OVER" if p95 > LIMIT else ""
            print(f"{times}, slowest statement {slowest} s  {status} {name} ({who}){mark}", flush=True)


if __name__ == "__main__":
    main()
