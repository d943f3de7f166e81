"""The audit trail's chains: what breaks one is named, and two writers make one chain."""

from __future__ import annotations

import hashlib
import json
import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import psycopg
import pytest
from django.db import connection, transaction

from checkpoint import audit, clock
from checkpoint.config.embedded_postgres import Addresses
from checkpoint.models import AuditEntry, AuditStream, Workflow
from checkpoint.people import Actor
from checkpoint.transactions import one_transaction
from tests import factories
from tests.sandbox_driver import wait_for

pytestmark = pytest.mark.usefixtures("database")

ADA = Actor("ada", "console")
OF = "FROM checkpoint_auditentry WHERE stream_id = %(stream)s"
IN = "WHERE stream_id = %(stream)s"
RENUMBER = "UPDATE checkpoint_auditentry SET seq ="
NO_TEXT = "the text does not match its hash"
NO_LINK = "the text does not follow the entry before it"
NO_MATCH = "what it is searched by is not what the text says"


@pytest.fixture
def forger(database: Addresses) -> Iterator[psycopg.Connection]:
    """Whoever owns the server: no law and no trigger holds."""
    with psycopg.connect(database.superuser, autocommit=True) as above:
        above.execute("SET session_replication_role = replica")
        yield above


def chain(length: int = 4) -> Workflow:
    """A workflow with so many entries in its stream."""
    workflow = factories.workflow()
    for number in range(1, length + 1):
        factories.audited(workflow, f"verb{number}", "workflow", actor=ADA, reason=f"because of {number}")
    assert list(audit.broken_links()) == []
    return workflow


@one_transaction
def append(*streams: uuid.UUID, verb: str = "note") -> None:
    """One entry in each of the streams."""
    audit.append([audit.Entry(stream, ADA, verb, "workflow") for stream in streams], at=clock.now())


def found() -> list[tuple[str, int, str]]:
    """What is broken."""
    return [(link.stream, link.seq, link.problem) for link in audit.broken_links()]


def numbered(workflow: Workflow) -> list[tuple[int, str]]:
    """The workflow's stream in short."""
    return list(AuditEntry.objects.filter(stream_id=workflow.pk).values_list("seq", "verb"))


def test_every_entry_holds_the_text_that_was_hashed_and_names_the_hash_before_it() -> None:
    workflow = chain()
    previous = audit.FIRST_HASH
    for seq, entry in enumerate(AuditEntry.objects.filter(stream_id=workflow.pk), 1):
        assert hashlib.sha256(entry.text.encode()).hexdigest() == entry.hash
        content = json.loads(entry.text)
        assert (content["seq"], content["previous"], content["stream"]) == (seq, previous, str(workflow.pk))
        assert (content["actor"], content["channel"], content["verb"]) == (entry.actor, entry.channel, entry.verb)
        previous = entry.hash
    head = AuditStream.objects.get(pk=workflow.pk)
    assert (head.last_seq, head.last_hash) == (4, previous)


def test_the_text_says_what_happened_in_the_words_that_were_given() -> None:
    workflow = factories.workflow()
    said = "„Über 100 €“\n\\ \u202e \u2028 \U0001f4b6"
    factories.audited(workflow, "decide", "case 7", before="open", after="decided", reason=said, details={"n": [1]})
    content = json.loads(AuditEntry.objects.get(stream_id=workflow.pk).text)
    assert (content["before"], content["after"], content["reason"]) == ("open", "decided", said)
    assert content["details"] == {"n": [1]}
    assert found() == []


@pytest.mark.parametrize(
    ("forgery", "seq", "problem"),
    [
        (f"UPDATE checkpoint_auditentry SET text = replace(text, 'because', 'in spite') {IN} AND seq = 2", 2, NO_TEXT),
        (f"UPDATE checkpoint_auditentry SET text = text || ' ' {IN} AND seq = 4", 4, NO_TEXT),
        (f"UPDATE checkpoint_auditentry SET hash = repeat('f', 64) {IN} AND seq = 3", 3, NO_TEXT),
        (f"DELETE {OF} AND seq = 2", 2, "entry 2 is missing"),
        (f"DELETE {OF} AND seq = 1", 1, "entry 1 is missing"),
        (f"DELETE {OF} AND seq = 4", 4, "the chain ends at 3, its head says 4"),
        (f"DELETE {OF}", 1, "the chain ends at 0, its head says 4"),
        ("UPDATE checkpoint_auditstream SET last_seq = 3 WHERE id = %(stream)s", 5,
         "the chain ends at 4, its head says 3"),
        ("UPDATE checkpoint_auditstream SET last_hash = repeat('0', 64) WHERE id = %(stream)s", 5,
         "the chain ends at 4, its head says 4"),
        (f"{RENUMBER} -2 {IN} AND seq = 2; {RENUMBER} 2 {IN} AND seq = 3; {RENUMBER} 3 {IN} AND seq = -2", 2, NO_LINK),
        (f"UPDATE checkpoint_auditentry SET actor = 'eve' {IN} AND seq = 3", 3, NO_MATCH),
        (f"UPDATE checkpoint_auditentry SET verb = 'other' {IN} AND seq = 3", 3, NO_MATCH),
        (f"UPDATE checkpoint_auditentry SET channel = 'engine' {IN} AND seq = 3", 3, NO_MATCH),
        (f"UPDATE checkpoint_auditentry SET at = at - interval '1 day' {IN} AND seq = 3", 3, NO_MATCH),
    ],
)  # fmt: skip
def test_a_forgery_is_named_by_its_first_broken_link(
    forger: psycopg.Connection, forgery: str, seq: int, problem: str
) -> None:
    workflow, _ = chain(), chain()
    for statement in forgery.split(";"):
        forger.execute(statement.encode(), {"stream": workflow.pk})
    assert found() == [(f"workflow/{workflow.pk}", seq, problem)]


@pytest.mark.parametrize("text", ["", "{}", "[]", "null", '{"seq": 2}', "not JSON", '{"at": 1}'])
def test_a_text_that_says_nothing_is_named_even_under_its_own_hash(forger: psycopg.Connection, text: str) -> None:
    workflow = chain()
    forger.execute(
        "UPDATE checkpoint_auditentry SET text = %s, hash = encode(sha256(%s::bytea), 'hex')"
        " WHERE stream_id = %s AND seq = 2",
        [text, text.encode(), workflow.pk],
    )
    assert found() == [(f"workflow/{workflow.pk}", 2, NO_LINK)]


def test_an_entry_rewritten_with_its_hash_breaks_the_one_after_it(forger: psycopg.Connection) -> None:
    workflow = chain()
    second = AuditEntry.objects.get(stream_id=workflow.pk, seq=2)
    text = second.text.replace("because of", "in spite of")
    forger.execute(
        "UPDATE checkpoint_auditentry SET text = %s, hash = %s WHERE stream_id = %s AND seq = 2",
        [text, audit.entry_hash(text), workflow.pk],
    )
    assert found() == [(f"workflow/{workflow.pk}", 3, NO_LINK)]


def test_a_chain_hung_under_another_head_is_named(forger: psycopg.Connection) -> None:
    """Entries, numbers and hashes all fit; only the texts say whose they are."""
    one, other = chain(2), chain(2)
    forger.execute("DELETE FROM checkpoint_auditentry WHERE stream_id = %s", [other.pk])
    forger.execute("UPDATE checkpoint_auditentry SET stream_id = %s WHERE stream_id = %s", [other.pk, one.pk])
    forger.execute(
        "UPDATE checkpoint_auditstream SET last_hash = (SELECT last_hash FROM checkpoint_auditstream WHERE id = %s)"
        " WHERE id = %s",
        [one.pk, other.pk],
    )
    expected = [(f"workflow/{other.pk}", 1, NO_LINK), (f"workflow/{one.pk}", 1, "the chain ends at 0, its head says 2")]
    assert sorted(found()) == sorted(expected)


def test_a_chain_without_a_head_is_named(forger: psycopg.Connection) -> None:
    workflow = chain()
    forger.execute("DELETE FROM checkpoint_auditstream WHERE id = %s", [workflow.pk])
    assert found() == [(str(workflow.pk), 0, "the head of its chain is missing")]


def test_a_stream_of_no_workflow_without_a_head_is_named(forger: psycopg.Connection) -> None:
    stream = uuid.uuid4()
    with transaction.atomic():
        audit.open_streams([(stream, "team/billing")])
        audit.append([audit.Entry(stream, ADA, "rename", "team")], at=clock.now())
    forger.execute("DELETE FROM checkpoint_auditstream WHERE id = %s", [stream])
    assert found() == [(str(stream), 0, "the head of its chain is missing")]


def test_a_workflow_whose_whole_trail_is_gone_is_named(forger: psycopg.Connection) -> None:
    workflow = chain()
    forger.execute("DELETE FROM checkpoint_auditentry WHERE stream_id = %s", [workflow.pk])
    forger.execute("DELETE FROM checkpoint_auditstream WHERE id = %s", [workflow.pk])
    assert found() == [(str(workflow.pk), 0, "the head of its chain is missing")]


def test_several_entries_of_one_change_are_linked_in_their_order() -> None:
    one, other = factories.workflow(), factories.workflow()
    append(one.pk, other.pk, one.pk)
    assert AuditEntry.objects.filter(stream_id=one.pk).count() == 2
    assert found() == []


def test_what_is_rolled_back_leaves_no_gap() -> None:
    workflow = chain(1)
    with transaction.atomic():
        audit.append([audit.Entry(workflow.pk, ADA, "undone", "workflow")], at=clock.now())
        transaction.set_rollback(True)
    append(workflow.pk)
    assert numbered(workflow) == [(1, "verb1"), (2, "note")]
    assert found() == []


def test_an_entry_needs_the_transaction_of_the_change_itself() -> None:
    workflow = chain(1)
    with pytest.raises(transaction.TransactionManagementError):
        audit.append([audit.Entry(workflow.pk, ADA, "note", "workflow")], at=clock.now())


def test_a_second_writer_waits_for_the_first_and_goes_on_after_it(forger: psycopg.Connection) -> None:
    workflow = chain(1)
    with ThreadPoolExecutor(1) as pool:
        with transaction.atomic():
            audit.append([audit.Entry(workflow.pk, ADA, "first", "workflow")], at=clock.now())
            second = pool.submit(_append_and_close, workflow.pk)
            wait_for(lambda: second.done() or _somebody_waits(forger))
        second.result()
    assert numbered(workflow) == [(1, "verb1"), (2, "first"), (3, "second")]
    assert found() == []


def test_writers_on_several_streams_make_gapless_chains() -> None:
    """Each takes both streams, in another order: they wait for each other, and never for ever."""
    one, other = chain(1), chain(1)
    orders = [(one.pk, other.pk), (other.pk, one.pk)] * 10
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda streams: _append_and_close(*streams), orders))
    for stream in AuditStream.objects.filter(pk__in=[one.pk, other.pk]):
        assert list(stream.entries.values_list("seq", flat=True)) == list(range(1, 22))
    assert found() == []


def _append_and_close(*streams: uuid.UUID) -> None:
    try:
        append(*streams, verb="second")
    finally:
        connection.close()


def _somebody_waits(above: psycopg.Connection) -> bool:
    query = (
        "SELECT EXISTS (SELECT FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock')"
    )
    return bool(above.execute(query).fetchone() == (True,))
