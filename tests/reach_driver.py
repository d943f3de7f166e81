"""The ways by which people reach the product, each speaking the same five actions and giving the same answers.

A further channel is a class with the same methods (those that it has) and a line in CHANNELS of `test_reach.py`.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from enum import Enum
from typing import Any, Protocol

from django.contrib.auth.models import User
from django.db import connection
from django.test import Client

from approvals.bulk import work
from approvals.models import BulkItem
from checkpoint.identity import accounts
from checkpoint.models import Case
from tests.api_driver import Api
from tests.console_driver import HTMX
from tests.test_commands import Ended, run

NOBODY = "nobody"
# What a body can say about who sends it. It must count for nothing (S14).
FORGED = dict.fromkeys(("user", "username", "person", "person_name", "actor", "by", "as"), "grace") | {
    "channel": "engine"
}
FORGED_HEADERS = {"X-Forwarded-User": "grace", "Remote-User": "grace", "X-Remote-User": "grace"}


class Answer(Enum):
    """How an action went, whatever the channel calls it."""

    DONE = "done"
    ABSENT = "there is no such thing (404)"
    REFUSED = "seen, but not allowed (403)"
    STRANGER = "who are you? (sign in)"


@dataclass(frozen=True)
class World:
    """What the actions are about.

    Attributes:
        other: the account that is administered.
    """

    case: Case
    other: User


class Channel(Protocol):
    """A way to the product for one person; None is somebody without an account."""

    writes_down_reads: bool

    def __init__(self, person: User | None) -> None: ...


_STATUS = {
    200: Answer.DONE,
    201: Answer.DONE,
    302: Answer.DONE,
    401: Answer.STRANGER,
    403: Answer.REFUSED,
    404: Answer.ABSENT,
}


class Page:
    """The console without JavaScript."""

    writes_down_reads = False
    headers: dict[str, str] = {}

    def __init__(self, person: User | None) -> None:
        self.client = Client(enforce_csrf_checks=True)
        if person is not None:
            # By its id, so that a disabled account has a session too: one from before it was disabled.
            self.client.force_login(person)
        shown = self.client.get("/login/" if person is None else "/review/")
        self.token = str((shown if shown.context else self.client.get("/login/")).context["csrf_token"])

    def view_workflow(self, world: World) -> Answer:
        """Its page."""
        return self.get(f"/workflows/{world.case.workflow_id}/")

    def view_case(self, world: World) -> Answer:
        """Its page."""
        return self.get(f"/cases/{world.case.pk}/")

    def decide_case(self, world: World) -> Answer:
        """Confirms what the case asks about, knowing what its page would show."""
        step = world.case.step
        sent = {"kind": "confirm", "step_version": str(step.version), "arguments_hash": step.arguments_hash}
        return self.post(f"/cases/{world.case.pk}/decision/", sent)

    def view_audit(self, world: World) -> Answer:
        """The search over all streams."""
        return self.get("/audit/")

    def administer_people(self, world: World) -> Answer:
        """Gives the other account a group."""
        seen = accounts.access_of(User.objects.get(pk=world.other.pk)).seen
        return self.post(f"/people/{world.other.pk}/access/", {"active": "1", "groups": "Approver", "seen": seen})

    def get(self, address: str) -> Answer:
        """Reads."""
        return self._answer(self.client.get(address, headers={**self.headers, **FORGED_HEADERS}))

    def post(self, address: str, fields: dict[str, str]) -> Answer:
        """Changes."""
        sent = {**FORGED, **fields, "reason": "I looked.", "csrfmiddlewaretoken": self.token}
        return self._answer(self.client.post(address, sent, headers={**self.headers, **FORGED_HEADERS}))

    def _answer(self, answered: Any) -> Answer:
        if answered.status_code == 302 and answered["Location"].startswith("/login/"):
            return Answer.STRANGER
        return _STATUS[answered.status_code]


class Fragment(Page):
    """The console as htmx asks for it."""

    headers = HTMX


class Bulk(Page):
    """Bulk jobs in the console, worked through here; the answer is what became of the one item."""

    def decide_case(self, world: World) -> Answer:
        """Prepares a job of one case, starts it, and works on it."""
        prepared = self.post("/bulk-jobs/", {"kind": "confirm", "case": str(world.case.pk), "selected": "ticked"})
        if prepared is not Answer.DONE:
            return prepared
        item = BulkItem.objects.get(case=world.case)
        started = self.post(f"/bulk-jobs/{item.job_id}/start/", {})
        work.work(seconds=60)
        item.refresh_from_db()
        return {"done": Answer.DONE, "refused": Answer.REFUSED}.get(item.result, started)


class CommandLine:
    """`manage.py … --as NAME`. A name that is no active account's is a stranger's."""

    writes_down_reads = True

    def __init__(self, person: User | None) -> None:
        self.name = person.username if person else NOBODY

    def view_workflow(self, world: World) -> Answer:
        """explain."""
        return self._answer(run("explain", str(world.case.workflow_id), "--as", self.name))

    def decide_case(self, world: World) -> Answer:
        """decide."""
        why = ("--reason", "I looked.", "--no-input")
        return self._answer(run("decide", str(world.case.pk), "confirm", *why, "--as", self.name))

    def view_audit(self, world: World) -> Answer:
        """export_audit."""
        return self._answer(run("export_audit", "--verb", "nothing", "--as", self.name))

    def administer_people(self, world: World) -> Answer:
        """people set."""
        why = ("--reason", "I looked.")
        return self._answer(run("people", "--as", self.name, "set", world.other.username, "--groups", "Approver", *why))

    def _answer(self, ended: Ended) -> Answer:
        if ended.code == 0:
            return Answer.DONE
        words = {"There is no active user": Answer.STRANGER, "may not": Answer.REFUSED, "There is no": Answer.ABSENT}
        return next(answer for said, answer in words.items() if said in ended.err)


class Program:
    """The API. An account that is disabled had its token from before."""

    writes_down_reads = False

    def __init__(self, person: User | None) -> None:
        self.api = Api.of(person) if person is not None else Api(None)
        self.api.headers |= FORGED_HEADERS

    def view_workflow(self, world: World) -> Answer:
        """Reads it."""
        return _STATUS[self.api.get(f"workflows/{world.case.workflow_id}/").status_code]

    def view_case(self, world: World) -> Answer:
        """Reads it."""
        return _STATUS[self.api.get(f"cases/{world.case.pk}/").status_code]

    def decide_case(self, world: World) -> Answer:
        """Confirms what the case asks about, knowing what reading it would show."""
        step = world.case.step
        sent = {"kind": "confirm", "step_version": step.version, "arguments_hash": step.arguments_hash}
        return _STATUS[self.api.post(f"cases/{world.case.pk}/decision/", sent | {"reason": "I looked."}).status_code]


_TABLES = """
SELECT c.relname FROM pg_class c WHERE c.relkind = 'r' AND c.relnamespace = 'public'::regnamespace
AND c.relname NOT IN (
  'checkpoint_auditentry', 'checkpoint_auditstream', 'checkpoint_apitoken', 'checkpoint_requestrate', 'django_session'
) ORDER BY 1
"""


def record() -> str:
    """Everything in the database but sessions, the use and rate of tokens and the audit, as a hash."""
    with connection.cursor() as cursor:
        cursor.execute(_TABLES)
        names = [name for (name,) in cursor.fetchall()]
        rows = " UNION ALL ".join(
            f"SELECT '{name}', md5(coalesce(string_agg(t::text, '|' ORDER BY t::text), '')) FROM {name} AS t"
            for name in names
        )
        cursor.execute(rows)
        return hashlib.sha256(repr(sorted(cursor.fetchall())).encode()).hexdigest()
