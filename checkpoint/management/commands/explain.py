"""`manage.py explain`: where a workflow is."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator
from datetime import datetime
from typing import Any

from django.core.management.base import CommandParser
from django.core.serializers.json import DjangoJSONEncoder

from checkpoint import command_line
from checkpoint.command_line import ClearCommand, printable
from checkpoint.explaining.explanations import Explanation, Request, StepExplanation, explain
from checkpoint.explaining.step_counts import PlanCounts
from checkpoint.models import Workflow
from checkpoint.permissions import workflows_visible_to
from checkpoint.rows.workflow_records import load
from checkpoint.short_ids import find, short
from checkpoint.states import StepStatus

STEPS_LISTED = 20  # of a batch; of a larger one, only those that are not verified


class Command(ClearCommand):
    """Prints what is done on which evidence, what is uncertain, what is asked, and what happens next."""

    help = "Say where a workflow is. Exit codes: 0 said, 1 no such workflow."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("id", help="the workflow's UUID, or its last 8 or more digits")
        parser.add_argument("--json", action="store_true", help="one JSON object")
        parser.add_argument("--as", dest="user", metavar="USER", help="only what this user may see")

    def handle(self, *args: Any, **options: Any) -> None:
        visible_workflows = Workflow.objects.all()
        if options["user"]:
            visible_workflows = workflows_visible_to(command_line.person(options["user"]))
        with command_line.clear_errors():
            workflow = find(visible_workflows.defer("input"), options["id"], noun="workflow")
        explanation = explain(load(workflow))
        if options["json"]:
            self.stdout.write(json.dumps(dataclasses.asdict(explanation), cls=DjangoJSONEncoder, ensure_ascii=False))
        else:
            self.stdout.write("\n".join(_lines(explanation)))


def _lines(explanation: Explanation) -> Iterator[str]:
    in_part = " in part" if explanation.partial else ""
    yield f"{explanation.kind} {explanation.id}: {_words(explanation.status)}{in_part}"
    yield f"Goal: {printable(explanation.goal)}"
    yield explanation.sentence
    yield from _batch_lines(explanation.counts)
    left_out = {batch.position for batch in explanation.counts.batches if batch.total > STEPS_LISTED}
    for step in explanation.steps:
        if step.position not in left_out or step.status != StepStatus.VERIFIED:
            yield ""
            yield from _step_lines(step)


def _batch_lines(counts: PlanCounts) -> Iterator[str]:
    """What became of each batch, in numbers."""
    for batch in counts.batches:
        left_out = "; those that are verified are not listed" if batch.total > STEPS_LISTED else ""
        yield f"Batch at position {batch.position}: {batch.total} steps, {batch}{left_out}"
    if counts.left_off:
        yield f"and {counts.left_off} more batches"


def _step_lines(step: StepExplanation) -> Iterator[str]:
    standing = f" ({_words(step.standing)})" if step.standing not in ("", step.status) else ""
    yield f"{step.position}. {step.name}: {_words(step.status)}{standing}, by {step.tool}"
    yield from _identity_lines(step)
    for seen in step.evidence:
        yield f"   {_clock(seen.observed_at)} {_words(seen.kind)}: {_words(seen.finding)}, {printable(seen.source)}"
    if step.waived:
        yield f"   waived: {printable(step.waived)}"
    if step.uncertain:
        yield f"   not known: {step.uncertain}"
    if step.tries:
        yield f"   {step.tries}"
    for question in step.questions:
        yield f"   case …{short(question.id)}: {printable(question.sentence)}"
        yield f"   answers: {', '.join(question.decisions)}"
    if step.request is not None:
        yield f"   approval …{short(step.request.id)}: {printable(step.request.sentence)}{_until(step.request)}"
        answers = "approve, reject, request_changes, " if step.request.status == "pending" else ""
        yield f"   answers: {answers}withdraw"
    if step.outlook.words:
        yield f"   next: {step.outlook.words}{f', not before {_clock(step.outlook.at)}' if step.outlook.at else ''}"


def _identity_lines(step: StepExplanation) -> Iterator[str]:
    if step.operation_id:
        yield f"   operation id: {printable(step.operation_id)}"
    if step.intent:
        yield f"   intent: {step.intent}"
    if step.compensation:
        yield f"   {step.compensation}"


def _until(request: Request) -> str:
    return "" if request.status == "returned" else f", until {_clock(request.answer_by)}"


def _words(name: str) -> str:
    return name.replace("_", " ")


def _clock(moment: datetime) -> str:
    return f"{moment:%Y-%m-%d %H:%M:%S} UTC"
