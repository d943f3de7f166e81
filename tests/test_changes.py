"""The console's stream of signals: what concerns people, to whom it concerns, for as long as they are signed in."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import httpx
import pytest
from django.contrib.auth.models import User
from django.contrib.sessions.models import Session
from django.test import Client

from checkpoint.events import following
from tests import factories
from tests.sandbox_driver import wait_for
from tests.web_driver import nobody_follows

pytestmark = pytest.mark.usefixtures("database")
SECONDS = 10.0


@contextmanager
def opened(web: str, person: User) -> Iterator[Iterator[str]]:
    """The lines of the person's stream."""
    client = Client()
    client.force_login(person)
    cookies = {"sessionid": client.cookies["sessionid"].value}
    with httpx.stream("GET", f"{web}/review/changes", cookies=cookies, timeout=SECONDS) as stream:
        lines = stream.iter_lines()
        assert (stream.status_code, next(lines)) == (200, "retry: 2000")
        yield lines
    wait_for(nobody_follows, SECONDS)


def said(lines: Iterator[str]) -> str:
    """The next line that says anything."""
    return next(line for line in lines if line and not line.startswith("id: "))


def test_a_question_is_signalled_and_routine_is_not(web_server: str) -> None:
    team = factories.team()
    workflow, other = factories.workflow(), factories.workflow(team=factories.team("Legal"))
    with opened(web_server, factories.person("ada", teams=[team])) as lines:
        factories.audited(other, "question", "step a", before="started", after="uncertain")
        factories.audited(workflow, "verify", "step a", before="committed", after="verified")
        assert said(lines) == ": still here", "something moved, and it is nobody's question"
        factories.audited(workflow, "commit", "step a", before="uncertain", after="committed")
        assert said(lines) == "data: changed", "evidence has answered what a person was asked"
        factories.audited(workflow, "question", "step a", before="started", after="uncertain")
        assert said(lines) == "data: changed"


@pytest.mark.parametrize("how", ["signed out", "disabled", "another password"])
def test_the_stream_ends_with_the_session(web_server: str, monkeypatch: pytest.MonkeyPatch, how: str) -> None:
    monkeypatch.setattr(following, "ADMITTED_EVERY", 0.1)
    person = factories.person("ada", teams=[factories.team()])
    with opened(web_server, person) as lines:
        if how == "signed out":
            Session.objects.all().delete()
        elif how == "disabled":
            User.objects.filter(pk=person.pk).update(is_active=False)
        else:
            person.set_password("another one that is long")
            person.save()
        assert not [line for line in lines if line.startswith("data")]


def test_who_is_in_no_team_gets_no_stream(web_server: str) -> None:
    client = Client()
    client.force_login(factories.person("eve"))
    cookies = {"sessionid": client.cookies["sessionid"].value}
    assert httpx.get(f"{web_server}/review/changes", cookies=cookies).status_code == 204
    assert httpx.get(f"{web_server}/review/changes").status_code == 302
