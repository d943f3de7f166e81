"""Anchors: what a chain alone cannot say, that its tail was cut, an anchor does."""

from __future__ import annotations

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psycopg
import pytest
from django.conf import settings
from django.db import DatabaseError, connection
from pytest_django.fixtures import Settings

from checkpoint import audit
from checkpoint.config.embedded_postgres import Addresses
from checkpoint.errors import AnchorKeyUnusable
from checkpoint.models import AnchoredHead, AuditAnchor, AuditEntry, AuditStream, Team, Workflow
from checkpoint.trail import anchor_checks, anchor_key, audit_anchors
from tests import factories
from tests.test_commands import run
from workers import tasks

pytestmark = pytest.mark.usefixtures("database")


@pytest.fixture
def forger(database: Addresses) -> Iterator[psycopg.Connection]:
    """Whoever owns the server: no law and no trigger holds."""
    with psycopg.connect(database.superuser, autocommit=True) as above:
        above.execute("SET session_replication_role = replica")
        yield above


def chain(length: int = 3) -> Workflow:
    """A workflow with so many entries in its stream, of the team that migrations made: a new one would be audited."""
    workflow = factories.workflow(team=Team.objects.get(slug="default"))
    grow(workflow, length)
    return workflow


def grow(workflow: Workflow, by: int = 1) -> None:
    """Further entries."""
    for _ in range(by):
        factories.audited(workflow, "note", "workflow", reason="because")


def cut(forger: psycopg.Connection, workflow: Workflow, *, to: int) -> None:
    """Takes away the entries after `to` and turns the head back, so that the chain is whole again."""
    last = AuditEntry.objects.get(stream_id=workflow.pk, seq=to)
    forger.execute("DELETE FROM checkpoint_auditentry WHERE stream_id = %s AND seq > %s", [workflow.pk, to])
    forger.execute(
        "UPDATE checkpoint_auditstream SET last_seq = %s, last_hash = %s WHERE id = %s", [to, last.hash, workflow.pk]
    )
    assert list(audit.broken_links()) == [], "the chain alone says nothing"


def found() -> list[tuple[str, str]]:
    """What anchors prove to be wrong."""
    return [(problem.about, problem.problem) for problem in anchor_checks.problems()]


def stated() -> list[tuple[int, str, int]]:
    """Every anchored head: anchor, stream, number."""
    heads = AnchoredHead.objects.order_by("anchor_id", "stream_id").values_list("anchor_id", "stream_id", "seq")
    return [(anchor, str(stream), seq) for anchor, stream, seq in heads]


def test_an_anchor_states_the_streams_that_changed_and_no_others() -> None:
    first, second = chain(2), chain(3)
    assert audit_anchors.anchor() == audit_anchors.Anchored(anchors=1, streams=2, more=False)
    assert audit_anchors.anchor() == audit_anchors.Anchored(anchors=0, streams=0, more=False)
    grow(second)
    audit_anchors.anchor()
    assert stated() == [(1, str(first.pk), 2), (1, str(second.pk), 3), (2, str(second.pk), 4)]
    assert found() == []
    assert anchor_checks.unanchored() == 0


def test_without_entries_there_is_nothing_to_anchor() -> None:
    chain(0)
    assert audit_anchors.anchor().anchors == 0
    assert found() == []


def test_a_cut_tail_is_named(forger: psycopg.Connection) -> None:
    workflow = chain()
    audit_anchors.anchor()
    cut(forger, workflow, to=1)
    said = "anchor 1 states entry 3, which is missing: its tail was cut"
    assert found() == [(f"workflow/{workflow.pk}", said)]
    grow(workflow)
    grow(workflow)
    said = "anchor 1 states entry 3, which is another one: it was rewritten"
    assert found() == [(f"workflow/{workflow.pk}", said)], "a tail that grew again"


def test_a_stream_that_is_gone_with_its_head_is_named(forger: psycopg.Connection) -> None:
    workflow = chain()
    audit_anchors.anchor()
    for statement in ("DELETE FROM checkpoint_auditentry", "DELETE FROM checkpoint_auditstream"):
        forger.execute(statement)
    assert found() == [(str(workflow.pk), "anchor 1 states entry 3, which is missing: its tail was cut")]


@pytest.mark.parametrize(
    ("statement", "said"),
    [
        ("DELETE FROM checkpoint_auditanchor WHERE number = 1", ("anchor 1", "it is missing")),
        (
            "UPDATE checkpoint_auditanchor SET text = replace(text, '2026', '2027')",
            ("anchor 1", "its text is not the one that was signed"),
        ),
        (
            "UPDATE checkpoint_auditanchor SET text = 'x', hash = encode(sha256('x'), 'hex') WHERE number = 2",
            ("anchor 2", "its text is not the one that was signed"),
        ),
        (
            """UPDATE checkpoint_auditanchor AS anchor SET text = first.text, hash = first.hash,
                 signature = first.signature
               FROM checkpoint_auditanchor AS first WHERE first.number = 1 AND anchor.number = 2""",
            ("anchor 2", "the text does not follow the anchor before it"),
        ),
        (
            "DELETE FROM checkpoint_anchoredhead WHERE anchor_id = 2",
            ("anchor 2", "its list of heads is not the one that was signed"),
        ),
    ],
)
def test_a_forged_anchor_is_named(forger: psycopg.Connection, statement: str, said: tuple[str, str]) -> None:
    workflow = chain()
    audit_anchors.anchor()
    grow(workflow)
    audit_anchors.anchor()
    assert found() == []
    forger.execute(statement)
    assert said in found()


def test_an_anchor_of_another_key_is_named_where_the_key_is_known(settings: Settings, tmp_path: Path) -> None:
    workflow = chain()
    audit_anchors.anchor()
    ours = anchor_key.public_text(anchor_key.load())
    assert list(anchor_checks.problems(trusted_key=ours)) == []
    settings.CHECKPOINT_HOME = tmp_path
    grow(workflow)
    audit_anchors.anchor()
    theirs = anchor_key.public_text(anchor_key.load())
    assert found() == []
    (problem,) = anchor_checks.problems(trusted_key=ours)
    assert (problem.about, problem.problem) == ("anchor 2", f"it was signed with the key {theirs}")


def test_an_anchor_kept_elsewhere_proves_what_was_cut_with_all_anchors(
    forger: psycopg.Connection, tmp_path: Path
) -> None:
    workflow, file = chain(), tmp_path / "anchor.json"
    assert run("anchor_audit", "--output", str(file)).code == 0
    assert run("verify_audit", "--anchor", str(file)).code == 0
    forger.execute("DELETE FROM checkpoint_auditanchor")
    forger.execute("DELETE FROM checkpoint_anchoredhead")
    cut(forger, workflow, to=1)
    assert run("verify_audit").code == 0, "nothing here says so any more"
    ended = run("verify_audit", "--anchor", str(file))
    assert ended.code == 1
    assert "anchor 1: it was signed, and is not here any more" in ended.err
    assert f"workflow/{workflow.pk}: anchor 1 states entry 3, which is missing: its tail was cut" in ended.err


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"text": 1}', "tampered"])
def test_a_kept_anchor_that_is_none_is_one_line(tmp_path: Path, content: str) -> None:
    chain()
    file = tmp_path / "anchor.json"
    run("anchor_audit", "--output", str(file))
    text = file.read_text().replace('"seq', "x").replace(", 3,", ", 2,").replace("3,\n", "2,\n")
    file.write_text(text if content == "tampered" else content)
    ended = run("verify_audit", "--anchor", str(file))
    assert (ended.code, len(ended.err.splitlines())) == (1, 1), ended.err


def test_many_streams_become_several_anchors_in_several_transactions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(audit_anchors, "HEADS_PER_ANCHOR", 2)
    monkeypatch.setattr(audit_anchors, "HEADS_PER_TRANSACTION", 3)
    for _ in range(7):
        chain(1)
    tasks.anchor_audit("an argument of a later version", later=True)
    assert [anchor for anchor, _, _ in stated()] == [1, 1, 2, 3, 3, 4, 5]
    assert [anchor.covers_until is None for anchor in AuditAnchor.objects.order_by("number")] == [True] * 4 + [False]
    assert found() == []


def test_what_an_open_transaction_writes_is_not_forgotten(database: Addresses) -> None:
    chain()
    with psycopg.connect(database.app) as other:
        started = other.execute("SELECT now()").fetchone()
        assert started is not None
        audit_anchors.anchor()
    covers_until = AuditAnchor.objects.get().covers_until
    assert covers_until is not None
    assert covers_until < started[0], "its entries will be looked for by the next anchor"


def test_two_at_once_make_one_chain() -> None:
    for _ in range(5):
        chain(1)

    def one() -> None:
        try:
            audit_anchors.anchor()
        finally:
            connection.close()

    with ThreadPoolExecutor(4) as pool:
        for done in [pool.submit(one) for _ in range(4)]:
            done.result()
    assert AuditAnchor.objects.count() == 1
    assert found() == []


@pytest.mark.parametrize("table", ["checkpoint_auditanchor", "checkpoint_anchoredhead"])
@pytest.mark.parametrize("change", ["UPDATE {} SET hash = 'x'", "DELETE FROM {}", "TRUNCATE {} CASCADE"])
def test_the_application_can_take_no_anchor_back(table: str, change: str) -> None:
    chain()
    audit_anchors.anchor()
    with pytest.raises(DatabaseError, match="permission denied"), connection.cursor() as cursor:
        cursor.execute(change.format(table))


@pytest.mark.parametrize("change", ["UPDATE {} SET hash = 'x'", "DELETE FROM {}", "TRUNCATE {} CASCADE"])
def test_nor_can_the_owner(database: Addresses, change: str) -> None:
    chain()
    audit_anchors.anchor()
    with psycopg.connect(database.owner) as owner, pytest.raises(psycopg.IntegrityError, match="checkpoint law"):
        owner.execute(change.format("checkpoint_auditanchor").encode())


def test_the_key_is_made_once_and_readable_by_its_owner_alone(settings: Settings, tmp_path: Path) -> None:
    settings.CHECKPOINT_HOME = tmp_path / "new"
    with ThreadPoolExecutor(4) as pool:
        keys = {anchor_key.public_text(key) for key in pool.map(lambda _: anchor_key.load(), range(8))}
    (file,) = (tmp_path / "new").iterdir()
    assert len(keys) == 1
    assert file.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("content", [None, "", "-----BEGIN PRIVATE KEY-----\nx\n-----END PRIVATE KEY-----\n"])
def test_a_named_key_that_is_none_is_said_and_nothing_is_anchored(
    settings: Settings, tmp_path: Path, content: str | None
) -> None:
    chain()
    file = tmp_path / "key.pem"
    settings.CHECKPOINT_ANCHOR_KEY = str(file)
    if content is not None:
        file.write_text(content)
    with pytest.raises(AnchorKeyUnusable, match="openssl genpkey"):
        audit_anchors.anchor()
    assert run("anchor_audit").code == 1
    assert not AuditAnchor.objects.exists()


def test_the_commands_say_what_is_anchored(forger: psycopg.Connection) -> None:
    assert "There are no entries to anchor yet" in run("anchor_audit").out
    assert "No anchor yet" in run("verify_audit").out
    workflow = chain()
    assert "1 anchors for 1 streams" in run("anchor_audit").out
    grow(workflow)
    said = run("verify_audit")
    key = json.loads(AuditAnchor.objects.get().text)["key"]
    assert (said.code, "1 chains have grown since" in said.out, key in said.out) == (0, True, True)
    assert settings.CHECKPOINT_ANCHOR_MINUTES == 10
    cut(forger, workflow, to=2)
    assert run("verify_audit").code == 1


def test_a_head_ahead_of_its_stream_is_still_a_broken_chain(forger: psycopg.Connection) -> None:
    workflow = chain()
    forger.execute("DELETE FROM checkpoint_auditentry WHERE seq = 3")
    assert [(link.stream, link.seq) for link in audit.broken_links()] == [(f"workflow/{workflow.pk}", 4 - 1)]
    assert AuditStream.objects.get(pk=workflow.pk).last_seq == 3


def test_entries_that_are_appended_while_the_chains_are_walked_are_no_broken_link() -> None:
    workflow = chain()
    read_before = AuditStream.objects.get(pk=workflow.pk)
    grow(workflow)
    assert audit._first_problem(read_before) is None
    assert read_before.last_seq == 4
