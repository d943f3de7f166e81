"""Speaks the verbs of those who work on cases, over every channel; and lets many people press in the same moment."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from io import StringIO
from typing import Any

from django.contrib.auth.models import User
from django.core.management import call_command
from django.core.management.base import CommandError
from django.db import connections
from django.test import Client

from checkpoint.models import AuditEntry, Case, PolicyVersion
from tests import factories
from tests.console_driver import HTMX, Forms, signed_in


def worker(case: Case, name: str = "ada", group: str = "Approver") -> User:
    """Somebody of the case's team who may decide it."""
    return factories.person(name, groups=[group], teams=[case.workflow.team])


def onlooker(case: Case, name: str = "otto") -> User:
    """Somebody of the team who sees the case and may not decide it."""
    return factories.person(name, teams=[case.workflow.team])


def stranger(name: str = "eve") -> User:
    """Somebody who may decide, elsewhere."""
    return factories.person(name, groups=["Approver"], teams=[factories.team("Legal")])


def put_in_force(rules: dict[str, Any]) -> PolicyVersion:
    """A policy, without asking whether it can be read."""
    number = PolicyVersion.objects.latest("number").number + 1
    return PolicyVersion.objects.create(number=number, sha256="", rules=rules, reason="tests", author="tests")


def entries(case: Case, verb: str) -> list[AuditEntry]:
    """What the audit says of one verb."""
    return list(AuditEntry.objects.filter(stream_id=case.workflow_id, verb=verb).order_by("seq"))


def at_once(*presses: Callable[[], Any]) -> list[Any]:
    """What each of the calls returned or raised, all of them made in the same moment, each on its own connection."""
    together, outcomes = threading.Barrier(len(presses)), [None] * len(presses)

    def press(number: int) -> None:
        try:
            together.wait(timeout=60)
            outcomes[number] = presses[number]()
        except Exception as error:
            outcomes[number] = error  # type: ignore[call-overload]
        finally:
            connections.close_all()

    threads = [threading.Thread(target=press, args=(number,)) for number in range(len(presses))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return outcomes


def raised(outcomes: Sequence[Any]) -> list[Exception]:
    """Those of the outcomes that are refusals."""
    return [outcome for outcome in outcomes if isinstance(outcome, Exception)]


def form(page: Any, action: str) -> dict[str, Any]:
    """The form of a page that leads to an address ending in `action`."""
    (found,) = [form for form in Forms(page.text).forms if form["action"].endswith(f"/{action}/")]
    return found


def offers(page: Any, action: str) -> bool:
    """Whether the page has such a form."""
    return any(form["action"].endswith(f"/{action}/") for form in Forms(page.text).forms)


def press(person: User | Client, case: Case, action: str, /, *, htmx: bool = False, **fields: Any) -> Any:
    """Opens the case's page, fills in the form that leads to `action` and sends it."""
    client = person if isinstance(person, Client) else signed_in(person)
    found = form(client.get(f"/cases/{case.pk}/"), action)
    sent = {**found["fields"], **found["buttons"], **fields}
    return client.post(found["action"], sent, headers=HTMX if htmx else None)


def send(person: User, case: Case, action: str, /, **fields: Any) -> Any:
    """Sends a form that the page may not offer, with a valid token."""
    client = signed_in(person)
    token = str(client.get("/review/").context["csrf_token"])
    return client.post(f"/cases/{case.pk}/{action}/", {"csrfmiddlewaretoken": token, **fields})


def command(*words: Any) -> tuple[int, str]:
    """Exit code and output of a management command."""
    out = StringIO()
    try:
        call_command(*map(str, words), stdout=out, stderr=out)
    except CommandError as error:
        return error.returncode, f"{out.getvalue()}{error}"
    except SystemExit as end:
        return int(end.code or 0), out.getvalue()
    return 0, out.getvalue()
