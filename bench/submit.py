"""Submits workflows of no-op steps through the product's own verb."""

from __future__ import annotations

import json
import sys

import django

django.setup()

from checkpoint.models import Team  # noqa: E402
from checkpoint.people import Actor  # noqa: E402
from checkpoint.planning.documents import read_document  # noqa: E402
from checkpoint.planning.plans import parse_plan  # noqa: E402
from checkpoint.tool_versions import newest_tools  # noqa: E402
from checkpoint.workflows import submit_many  # noqa: E402


def main(workflows: int, steps: int) -> None:
    """Submits so many workflows, in one transaction."""
    document = {
        "goal": "Measure.",
        "kind": "bench",
        "prompt_version": "1",
        "steps": [
            {"name": f"step_{number}", "tool": "bench.noop", "arguments": {"number": number}} for number in range(steps)
        ],
    }
    plan = parse_plan(read_document(json.dumps(document).encode(), "json"), newest_tools())
    submit_many([plan] * workflows, team=Team.objects.get(slug="default"), actor=Actor("bench", "command"))


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
