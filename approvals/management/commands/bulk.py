"""`manage.py bulk`: one answer to many cases or requests for approval, as a stored job."""

from __future__ import annotations

import sys
import time
from argparse import ArgumentParser
from collections.abc import Iterator
from typing import Any
from uuid import UUID

from django.contrib.auth.models import User
from django.core.management.base import CommandParser
from django.db.models import Model, QuerySet

from approvals.bulk import jobs, queries, trail
from approvals.bulk.preview import Preview, cut_off, preview
from approvals.bulk.selection import Matching, Selection, counted
from approvals.bulk.states import ANSWERS, BulkJobStatus, BulkResult
from approvals.inbox.narrowing import Narrowed
from approvals.inbox.review_queue import Shown
from approvals.models import BulkJob
from approvals.queries import cases_visible_to
from approvals.step_up import Authentication
from checkpoint import command_line
from checkpoint.command_line import ClearCommand, printable
from checkpoint.errors import Conflict, DecisionIncomplete
from checkpoint.models import Approval
from checkpoint.occasions import login_name
from checkpoint.permissions import workflows_visible_to
from checkpoint.short_ids import find, short
from checkpoint.states import Decision

INCOMPLETE = 2
ENDED = 3
NOT_ALL_DONE = 4
LOOK_SECONDS = 0.5


class Command(ClearCommand):
    """Prepares a job and shows what it would do, starts it, says how far it is, aborts it."""

    help = (
        "Answer many cases or requests for approval at once. Exit codes: 0 done as asked, 2 the selection, the answer "
        "or the reason does not fit, 3 the job has ended before, 4 with --wait: it ended with items that were not "
        "answered, 1 any other refusal."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        verbs = parser.add_subparsers(dest="verb", required=True, metavar="VERB")
        _add_selection(verbs.add_parser("create", help="prepare a job and show what it would do; answers nothing yet"))
        for name, words in _ABOUT_ONE_JOB.items():
            verbs.add_parser(name, help=words).add_argument("job", help="the job's UUID, or its last 8 or more digits")
        for name in ("start", "status"):
            verbs.choices[name].add_argument("--wait", action="store_true", help="until the job has ended")
        for verb in verbs.choices.values():
            verb.add_argument("--as", dest="user", metavar="USER", help="who acts; by default your login name")

    def handle(self, *args: Any, **options: Any) -> None:
        person = command_line.person(options["user"] or login_name())
        verb = {"create": self._create, "start": self._start, "status": self._status, "abort": self._abort}
        with (
            command_line.clear_errors(),
            command_line.clear_errors(ENDED, only=Conflict),
            command_line.clear_errors(INCOMPLETE, only=DecisionIncomplete),
        ):
            verb[options["verb"]](person, options)

    def _create(self, person: User, options: dict[str, Any]) -> None:
        job = jobs.create(
            person=person,
            channel=command_line.CHANNEL,
            kind=Decision(options["kind"]),
            selection=_selection(person, options),
            reason=options["reason"],
        )
        self._say(*_preview_lines(job, preview(job)))
        self._say(f"Nothing is answered yet: `manage.py bulk start {short(job.pk)}` begins.")

    def _start(self, person: User, options: dict[str, Any]) -> None:
        prepared = _job(person, options)
        asked = None
        if prepared.status == BulkJobStatus.DRAFT and preview(prepared).needs_password:
            asked = command_line.authenticate(person, ask=True)
        job = jobs.start(
            job_id=prepared.pk, person=person, channel=command_line.CHANNEL, authentication=Authentication(asked)
        )
        self._say(f"Started bulk job {job.pk} with {counted(job.noun, job.count)}.")
        if options["wait"]:
            self._follow(job)

    def _status(self, person: User, options: dict[str, Any]) -> None:
        job = _job(person, options)
        if options["wait"] and job.status == BulkJobStatus.RUNNING:
            self._follow(job)
            return
        self._say(*_status_lines(job))

    def _abort(self, person: User, options: dict[str, Any]) -> None:
        job = jobs.abort(job_id=_job(person, options).pk, person=person, channel=command_line.CHANNEL)
        self._say(*_status_lines(job))

    def _follow(self, job: BulkJob) -> None:
        while job.status == BulkJobStatus.RUNNING:
            time.sleep(LOOK_SECONDS)
            job.refresh_from_db()
        self._say(*_status_lines(job))
        if trail.totals(job).done < job.count:
            sys.exit(NOT_ALL_DONE)

    def _say(self, *lines: str) -> None:
        self.stdout.write("\n".join(lines))


_ABOUT_ONE_JOB = {
    "start": "let the workers answer what was prepared",
    "status": "how far it is, and what became of each item",
    "abort": "end it before its next item; what was answered stays",
}


def _add_selection(parser: ArgumentParser) -> None:
    every = [kind.value for kinds in ANSWERS.values() for kind in kinds]
    parser.add_argument("kind", choices=every, help="the answer")
    parser.add_argument("--reason", required=True, help="why; every answer keeps it in the audit trail")
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--case", nargs="+", metavar="ID", default=[], help="these cases")
    what.add_argument("--approval", nargs="+", metavar="ID", default=[], help="these requests for approval")
    what.add_argument("--all", action="store_true", help="all that wait, or that match the following")
    lists = [shown.value for shown in Shown if shown is not Shown.DONE]
    parser.add_argument("--list", choices=lists, default=Shown.WAITING.value, help="with --all: that list of the queue")
    for name, words in _NARROWING.items():
        parser.add_argument(f"--{name}", default="", help=f"with --all: {words}")


_NARROWING = {
    "team": "the team's slug",
    "kind-of-workflow": "the workflow's kind",
    "tool": "the tool's name",
    "question": "the case's reason, such as outcome_unknown",
    "batch": "a workflow's id, a colon and a position in its plan",
}


def _selection(person: User, options: dict[str, Any]) -> Selection:
    if options["all"]:
        narrowed = Narrowed(
            team=options["team"],
            kind=options["kind_of_workflow"],
            tool=options["tool"],
            reason=options["question"],
            batch=options["batch"],
        )
        return Selection(matching=Matching(narrowed, Shown(options["list"])))
    approvals = Approval.objects.filter(workflow__in=workflows_visible_to(person))
    return Selection(
        cases=_ids(cases_visible_to(person), options["case"], "case"),
        approvals=_ids(approvals, options["approval"], "request for approval"),
    )


def _ids(things: QuerySet[Any], texts: list[str], noun: str) -> tuple[UUID, ...]:
    found: list[Model] = [find(things, text, noun=noun) for text in texts]
    return tuple(one.pk for one in found)


def _job(person: User, options: dict[str, Any]) -> BulkJob:
    return find(queries.jobs_visible_to(person), options["job"], noun="bulk job")


def _preview_lines(job: BulkJob, seen: Preview) -> Iterator[str]:
    yield f"Bulk job {job.pk}: {job.kind} {counted(job.noun, job.count)}."
    if left_out := cut_off(job):
        yield left_out
    for line in seen.tools:
        yield f"  {line.tool} ({line.reversibility}): {line.count}, of which {line.answered} will be answered"
    yield from (f"  {sentence}" for sentence in [*seen.sentences, seen.warning] if sentence)
    for reason, expected in seen.unanswered:
        yield f"  {len(expected)} will not be answered: {printable(reason)}"


def _status_lines(job: BulkJob) -> Iterator[str]:
    totals = ", ".join(f"{count} {result}" for result, count in trail.totals(job).as_json().items())
    items = "1 item" if job.count == 1 else f"{job.count} items"
    yield f"Bulk job {job.pk}: {job.kind}, {job.status}. {items}: {totals}"
    for item in job.items.exclude(result__in=[BulkResult.DONE, BulkResult.PENDING]):
        yield f"  {item.number} {item.result}, {job.noun} {item.case_id or item.approval_id}: {printable(item.message)}"
