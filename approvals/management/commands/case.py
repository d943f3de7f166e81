"""`manage.py case`: what people do about a case besides answering it."""

from __future__ import annotations

import mimetypes
from collections.abc import Callable, Iterator
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

from django.contrib.auth.models import User
from django.core.management.base import CommandError, CommandParser

from approvals.casework import assignments, attachments, comments, escalations, similar_cases, snoozes
from approvals.casework.attachments import File
from approvals.casework.case_work import how_it_closed, said
from approvals.models import Escalation
from approvals.queries import cases_visible_to
from checkpoint import command_line
from checkpoint.command_line import ClearCommand, printable
from checkpoint.errors import Conflict
from checkpoint.models import Case
from checkpoint.occasions import login_name
from checkpoint.short_ids import find, short
from checkpoint.states import CaseStatus
from checkpoint.storage import stored_bytes

MOVED_ON = 3
COMMENTS_SHOWN = 20
_REASON = "why; kept in the audit trail"


class Command(ClearCommand):
    """One action on one case, as a person."""

    help = (
        "Look after a case: show, claim, release, assign, snooze, wake, comment, attach, escalate. Exit codes: 0 done "
        "(or done before, by the same person), 3 somebody else was first or the case is closed, 1 any other refusal."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("case", help="the case's UUID, or its last 8 or more digits")
        parser.add_argument("--as", dest="user", metavar="USER", help="who acts; by default your login name")
        actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
        actions.add_parser("show", help="who has it, what was said and brought, and cases like it")
        actions.add_parser("claim", help="take it on; others still may decide")
        actions.add_parser("release", help="let it go")
        actions.add_parser("wake", help="end a snooze before its time")
        assign = actions.add_parser("assign", help="give it to somebody of the team who may decide")
        assign.add_argument("to", help="the account's name")
        snooze = actions.add_parser("snooze", help="put it aside; it comes back by itself")
        snooze.add_argument("--hours", type=float, required=True, help="for how long")
        comment = actions.add_parser("comment", help="say something about it")
        comment.add_argument("text")
        attach = actions.add_parser("attach", help="keep a file as evidence")
        attach.add_argument("file", type=Path)
        escalate = actions.add_parser("escalate", help="tell those on call")
        for reasoned in (assign, snooze, attach, escalate):
            reasoned.add_argument("--reason", required=True, help=_REASON)

    def handle(self, *args: Any, **options: Any) -> None:
        person = command_line.person(options["user"] or login_name())
        with command_line.clear_errors(), command_line.clear_errors(MOVED_ON, only=Conflict):
            cases = cases_visible_to(person).select_related("step__tool_version", "workflow__team", "decision")
            case = find(cases, options["case"], noun="case")
            said_of_it = _ACTIONS[options["action"]](case, person, options)
        self.stdout.write(said_of_it)


def _bound(case: Case, person: User) -> dict[str, Any]:
    return {"case_id": case.pk, "person": person, "channel": command_line.CHANNEL}


def _show(case: Case, person: User, options: dict[str, Any]) -> str:
    return "\n".join([*_state(case), *_said_and_brought(case), *_alike(case)])


def _state(case: Case) -> Iterator[str]:
    yield f"{case.rule.title} ({case.reason}), asked at {said(case.opened_at)}"
    yield f"  {printable(case.sentence)}"
    if case.status != CaseStatus.OPEN:
        yield f"  closed: {printable(how_it_closed(case))}"
    held, aside = assignments.current(case), snoozes.current(case)
    yield f"  who has it: {printable(held.person_name) if held else 'nobody'}"
    if aside is not None:
        yield f"  snoozed by {printable(aside.person_name)} until {said(aside.ends_at)}: {printable(aside.reason)}"
    escalation = Escalation.objects.filter(case=case).first()
    if escalation is not None:
        yield f"  escalated by {printable(escalation.person_name)}: {printable(escalation.reason)}"


def _said_and_brought(case: Case) -> Iterator[str]:
    for comment in case.comments.order_by("-pk")[:COMMENTS_SHOWN][::-1]:
        yield f"  {printable(comment.person_name)} at {said(comment.commented_at)}: {printable(comment.text)}"
    for file in case.attachments.select_related("artifact"):
        kept, by = file.artifact, printable(file.person_name)
        yield f"  file {printable(kept.name)}, {kept.size} bytes, sha256 {kept.sha256}, by {by}"


def _alike(case: Case) -> Iterator[str]:
    if others := similar_cases.others_in_group(case):
        narrowed = similar_cases.group(case)
        together = f"--batch {narrowed.batch} --tool {narrowed.tool} --question {narrowed.reason}"
        yield f"  {others} like it in this batch; together: manage.py bulk create ANSWER --all {together}"
    for other in similar_cases.open_ones(case):
        yield f"  like it: {short(other.pk)}, open since {said(other.opened_at)}"
    for other in similar_cases.answered(case):
        yield f"  like it: {short(other.pk)}: {printable(how_it_closed(other))}"


def _claim(case: Case, person: User, options: dict[str, Any]) -> str:
    return f"{assignments.claim(**_bound(case, person)).person_name} has this case; others still may decide it."


def _release(case: Case, person: User, options: dict[str, Any]) -> str:
    assignments.release(**_bound(case, person))
    return "Nobody has this case now."


def _assign(case: Case, person: User, options: dict[str, Any]) -> str:
    held = assignments.current(case)
    seen = held.pk if held else None
    made = assignments.assign(to=options["to"], reason=options["reason"], seen=seen, **_bound(case, person))
    return f"{made.person_name} has this case; others still may decide it."


def _snooze(case: Case, person: User, options: dict[str, Any]) -> str:
    # More hours than a century has are no time that can be added to another.
    lasting = timedelta(hours=min(max(options["hours"], 0.0), 1_000_000.0))
    made = snoozes.snooze(lasting=lasting, reason=options["reason"], **_bound(case, person))
    return f"Put aside until {said(made.ends_at)}; it stays open and counted."


def _wake(case: Case, person: User, options: dict[str, Any]) -> str:
    snoozes.wake(**_bound(case, person))
    return "It is not put aside."


def _comment(case: Case, person: User, options: dict[str, Any]) -> str:
    comments.comment(text=options["text"], **_bound(case, person))
    return "Your comment is kept."


def _attach(case: Case, person: User, options: dict[str, Any]) -> str:
    path: Path = options["file"]
    media_type = mimetypes.guess_type(path.name)[0] or ""
    try:
        with path.open("rb") as stream:
            chunks = iter(partial(stream.read, stored_bytes.CHUNK), b"")
            file = File(name=path.name, media_type=media_type, chunks=chunks)
            made = attachments.attach(file=file, reason=options["reason"], **_bound(case, person))
    except OSError as error:
        raise CommandError(f"{path} cannot be read: {error.strerror}; nothing was kept.") from error
    return f"Kept as evidence: {printable(made.artifact.name)}, sha256 {made.artifact.sha256}."


def _escalate(case: Case, person: User, options: dict[str, Any]) -> str:
    escalations.escalate(reason=options["reason"], **_bound(case, person))
    return "Those on call are told."


_ACTIONS: dict[str, Callable[[Case, User, dict[str, Any]], str]] = {
    "show": _show,
    "claim": _claim,
    "release": _release,
    "assign": _assign,
    "snooze": _snooze,
    "wake": _wake,
    "comment": _comment,
    "attach": _attach,
    "escalate": _escalate,
}
