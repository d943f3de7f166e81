"""Search in the audit over all streams: what is found, in which order, page by page, and what it looks like."""

from __future__ import annotations

import re
from datetime import datetime
from typing import Any

import pytest

from checkpoint import clock
from checkpoint.errors import FilterInvalid
from checkpoint.models import AuditEntry, Team, Workflow
from checkpoint.people import ENGINE, Actor
from checkpoint.trail import audit_search
from checkpoint.trail.audit_filter import AuditFilter, read_filter
from checkpoint.trail.audit_search import Found, Place, find
from tests import factories, flush
from tests.console_driver import HTMX, signed_in
from tests.time_driver import MovableTime

pytestmark = pytest.mark.usefixtures("database")


def workflow() -> Workflow:
    """Of the team that migrations made: a new one would be audited."""
    return factories.workflow(team=Team.objects.get(slug="default"))


def note(of: Workflow, subject: str, *, actor: str = "ada", channel: str = "console", **fields: Any) -> None:
    """One entry."""
    verb = fields.pop("verb", "note")
    factories.audited(of, verb, subject, actor=Actor(actor, channel), **fields)


def subjects(**given: str) -> list[str]:
    """What a filter finds, newest first."""
    return said(find(None, read_filter(given)))


def said(found: Found) -> list[str]:
    """The subjects of a page."""
    return [row.content["subject"] for row in found.rows]


def some() -> tuple[Workflow, Workflow]:
    """Entries of two people and the engine in two streams."""
    first, second = workflow(), workflow()
    note(first, "step charge_card", verb="decide", reason="I saw “100 %_off” in the ledger.")
    note(second, "step send_mail", actor="eve", channel="api", verb="submit")
    note(first, "case ünlocked", actor=ENGINE.name, channel=ENGINE.channel, verb="ask")
    note(second, "step charge_card", actor="workers", channel=ENGINE.channel, verb="publish")
    return first, second


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({}, [3, 2, 1, 0]),
        ({"actor": "ada"}, [0]),
        ({"actor": "engine"}, [2]),
        ({"actor": "workers"}, [3]),
        ({"actor": "ad"}, []),
        ({"who": "people"}, [1, 0]),
        ({"who": "engine"}, [3, 2]),
        ({"verb": "submit"}, [1]),
        ({"who": "people", "verb": "submit"}, [1]),
        ({"who": "engine", "verb": "submit"}, []),
        ({"channel": "api"}, [1]),
        ({"words": "CHARGE_card"}, [3, 0]),
        ({"words": "ünlocked"}, [2]),
        ({"words": "100 %_off"}, [0]),
        ({"words": "100 x_off"}, []),
        ({"words": "“100"}, [0]),
        ({"words": '"subject":"step'}, []),
        ({"actor": "ada", "words": "ledger", "who": "people", "channel": "console", "verb": "decide"}, [0]),
        ({"since": "2000-01-01T00:00"}, [3, 2, 1, 0]),
        ({"until": "2000-01-01T00:00"}, []),
        ({"stream": "first"}, [2, 0]),
        ({"stream": "second", "actor": "eve"}, [1]),
        ({"stream": "system"}, []),
    ],
)
def test_each_member_narrows(given: dict[str, str], expected: list[int]) -> None:
    streams = dict(zip(("first", "second"), some(), strict=True))
    if given.get("stream") in streams:
        given = {**given, "stream": str(streams[given["stream"]].pk)}
    names = ["step charge_card", "step send_mail", "case ünlocked", "step charge_card"]
    assert subjects(**given) == [names[index] for index in expected]


def test_times_are_utc_and_the_end_is_not_included(time_machine: MovableTime) -> None:
    of = workflow()
    note(of, "early")
    time_machine.pass_seconds(3600)
    between = clock.now()
    note(of, "late")
    at = AuditEntry.objects.get(seq=2).at
    text = f"{between:%Y-%m-%dT%H:%M:%S.%f}"
    assert (subjects(since=text), subjects(until=text)) == (["late"], ["early"])
    assert subjects(until=at.isoformat()) == ["early"]
    assert subjects(since=at.isoformat(), until="9999-12-31T23:59+00:00") == ["late"]


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"since": "yesterday"}, "since: 'yesterday' is no time"),
        ({"stream": "charge"}, "stream: 'charge' is none"),
        ({"who": "robots"}, "who: choose people or engine"),
    ],
)
def test_what_cannot_be_read_is_said(given: dict[str, str], words: str) -> None:
    with pytest.raises(FilterInvalid, match=words):
        read_filter(given)
    answered = signed_in(factories.person("audrey", groups=["Auditor"])).get("/audit/", given)
    assert answered.status_code == 422
    assert words in answered.text.replace("&#x27;", "'")


@pytest.mark.parametrize("given", [{}, {"who": "people"}, {"actor": "ada"}, {"verb": "note"}, {"stream": "first"}])
def test_pages_lead_through_every_entry_once(monkeypatch: pytest.MonkeyPatch, given: dict[str, str]) -> None:
    monkeypatch.setattr(audit_search, "PAGE_SIZE", 4)
    first, second = workflow(), workflow()
    for number in range(7):
        note(first, f"first {number}")
        note(second, f"second {number}")
    narrowed = read_filter(given | ({"stream": str(first.pk)} if "stream" in given else {}))
    assert sorted(walked(narrowed)) == sorted(f"first {number}" for number in range(7)) + (
        [] if "stream" in given else sorted(f"second {number}" for number in range(7))
    )


def test_entries_of_the_same_time_are_neither_lost_nor_doubled(monkeypatch: pytest.MonkeyPatch, database: Any) -> None:
    monkeypatch.setattr(audit_search, "PAGE_SIZE", 2)
    for letter in "abc":
        of = workflow()
        for number in range(3):
            note(of, f"{letter}{number}")
    flush.step_over_the_law(database.superuser, "UPDATE checkpoint_auditentry SET at = '2026-12-01T12:00:00Z'")
    assert sorted(walked(AuditFilter())) == [f"{letter}{number}" for letter in "abc" for number in range(3)]


def walked(narrowed: AuditFilter) -> list[str]:
    """The subjects on all pages."""
    found = find(None, narrowed)
    subjects = said(found)
    while found.following is not None:
        assert Place.read(str(found.following)) == found.following
        found = find(None, narrowed, before=found.following)
        subjects += said(found)
    return subjects


@pytest.mark.parametrize("stream", [True, False])
def test_a_search_for_words_looks_so_far_and_says_how_far(monkeypatch: pytest.MonkeyPatch, stream: bool) -> None:
    monkeypatch.setattr(audit_search, "LOOKED_THROUGH", 5)
    of = workflow()
    note(of, "needle")
    for number in range(12):
        note(of, f"hay {number}")
    narrowed = AuditFilter(words="needle", stream=of.pk if stream else None)
    first = find(None, narrowed)
    assert (said(first), first.looked_back_to) == ([], AuditEntry.objects.get(seq=8).at)
    second = find(None, narrowed, before=first.following)
    third = find(None, narrowed, before=second.following)
    assert (said(second), said(third), third.following) == ([], ["needle"], None)
    assert walked(AuditFilter(words="hay", stream=narrowed.stream)) == [f"hay {number}" for number in range(11, -1, -1)]


@pytest.mark.parametrize("text", ["", "x", "a~b~c", f"2026-12-01T12:00:00~{'0' * 32}~1", "~~", "2026~~1"])
def test_a_cursor_that_is_none_begins_at_the_beginning(text: str) -> None:
    assert Place.read(text) is None
    note(workflow(), "entry")
    answered = signed_in(factories.person("audrey", groups=["Auditor"])).get("/audit/", {"before": text})
    assert answered.status_code == 200


# --- the pages


def auditor(*groups: str) -> Any:
    """A browser of somebody in these groups."""
    return signed_in(factories.person("audrey", groups=groups or ["Auditor"]))


def test_the_page_shows_who_what_and_why_and_links_to_the_entry() -> None:
    first, _ = some()
    page = auditor().get("/audit/", {"actor": "ada"})
    assert page.status_code == 200
    assert "I saw “100 %_off” in the ledger." in page.text
    assert f'href="/audit/{first.pk}/1/"' in page.text
    assert "audit/export?actor=ada&amp;format=jsonl" in page.text
    fragment = auditor_again(page).get("/audit/", {"actor": "ada"}, headers=HTMX)
    assert "<html" not in fragment.text
    assert "I saw" in fragment.text


def auditor_again(page: Any) -> Any:
    """The browser that asked for the page."""
    return page.client


def test_an_entry_page_shows_the_exact_text_its_hash_and_its_neighbours() -> None:
    first, _ = some()
    note(first, "third")
    page = auditor().get(f"/audit/{first.pk}/2/")
    rows = {row.seq: row for row in AuditEntry.objects.filter(stream_id=first.pk)}
    shown = re.sub(r"<[^>]+>", "", page.text).replace("&quot;", '"')
    assert rows[2].text in shown
    assert all(row.hash in shown for row in rows.values())
    assert "Damaged" not in shown
    assert f'href="/workflows/{first.pk}/"' in page.text


@pytest.mark.parametrize(
    ("statement", "words"),
    [
        ("UPDATE checkpoint_auditentry SET text = '{{}}' WHERE seq = 2", "not the one that was hashed"),
        ("UPDATE checkpoint_auditentry SET text = 'x' WHERE seq = 2", "not the one that was hashed"),
        ("UPDATE checkpoint_auditentry SET hash = 'x' WHERE seq = 1", "does not name the hash of the entry before it"),
    ],
)
def test_a_damaged_entry_is_shown_as_such_and_breaks_no_page(database: Any, statement: str, words: str) -> None:
    first, _ = some()
    flush.step_over_the_law(database.superuser, statement.replace("{{}}", "{}"))
    client = auditor()
    assert words in client.get(f"/audit/{first.pk}/2/").text
    assert "damaged" in client.get("/audit/", {"stream": str(first.pk)}).text


def test_hostile_text_stays_text() -> None:
    note(workflow(), "<script>alert(1)</script>\u202e", reason="<b>\u200b")
    page = auditor().get("/audit/", {"actor": "<script>", "words": '"><script>'})
    assert "<script>alert" not in page.text
    page = auditor_again(page).get("/audit/")
    assert "<script>alert" not in page.text
    assert "U+202E" in page.text


def test_an_entry_that_does_not_exist_is_404() -> None:
    answered = auditor().get(f"/audit/{workflow().pk}/7/")
    assert answered.status_code == 404
    assert "There is no entry 7" in answered.text


@pytest.mark.parametrize("address", ["/audit/", "/audit/export", "/audit/{}/1/"])
@pytest.mark.parametrize("group", ["Operator", "Approver", "Agent", ""])
def test_members_of_a_team_see_its_workflows_trail_and_nothing_of_the_whole(address: str, group: str) -> None:
    of = workflow()
    note(of, "entry")
    member = factories.person("ada", groups=[group] if group else [], teams=[of.team])
    client = signed_in(member)
    assert client.get(address.format(of.pk)).status_code == 403
    page = client.get(f"/workflows/{of.pk}/")
    assert "entry" in page.text
    assert 'href="/audit/"' not in page.text


def test_an_export_that_cannot_be_read_is_400() -> None:
    client = auditor("Admin")
    assert client.get("/audit/export", {"format": "xml"}).status_code == 400
    assert client.get("/audit/export", {"since": "x"}).status_code == 400


def test_the_newest_anchor_is_named() -> None:
    from checkpoint.trail import audit_anchors

    client = auditor()
    assert "No anchor yet" in client.get("/audit/").text
    audit_anchors.anchor()
    assert "Newest anchor: no. 1" in client.get("/audit/").text


def test_place_reads_what_it_writes() -> None:
    place = Place(datetime.fromisoformat("2026-12-01T12:00:00.000001+00:00"), workflow().pk, 3)
    assert Place.read(str(place)) == place
