"""`sql.execute`: the statement and its marker commit together or not at all, and a lookup never errs."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from checkpoint.contracts import RecoveryClass
from checkpoint.errors import ArgumentsInvalid
from checkpoint.outcomes import Absent, Found, Inconclusive, NotApplied, NotVisible, Pending, Visible
from checkpoint.planning.argument_schemas import match_variant
from tests.http_driver import call, committed
from tests.sandbox_driver import wait_for
from tests.sql_driver import Shop, Wire, arguments
from workers.registry import Call
from workers.tools import operator_lists, sql_databases
from workers.tools.sql_execute import CommitUnanswered, SqlExecute

RETURNING = "UPDATE stock SET pieces = pieces - $1 WHERE article = $2 RETURNING article, pieces"


@pytest.fixture
def tool(shop: Shop) -> SqlExecute:
    return shop.tool()


@pytest.fixture
def wire(shop: Shop) -> Iterator[Wire]:
    made = Wire(int(shop.entry.url.rsplit(":", 1)[1].split("/")[0]))
    yield made
    made.close()


def through(wire: Wire, shop: Shop) -> SqlExecute:
    """The tool, with the wire between it and the database."""
    where, name = shop.entry.url.rsplit("/", 1)
    return shop.tool(url=f"{where.rsplit(':', 1)[0]}:{wire.port}/{name}")


class TestExecuting:
    def test_a_statement_is_executed_found_and_verified(self, tool: SqlExecute, shop: Shop) -> None:
        given, made = arguments(RETURNING, 3, "chair"), call()
        receipt = tool.execute(given, made)
        assert shop.pieces() == 7
        assert receipt.facts["rows"] == 1
        assert receipt.facts["returned"] == [{"article": "chair", "pieces": 7}]
        assert tool.inspect(given, replace(made, fence=2)) == Found(receipt)
        assert tool.verify(given, committed(made, receipt)) == Visible(receipt.facts)

    def test_a_second_execution_under_the_same_key_does_nothing(self, tool: SqlExecute, shop: Shop) -> None:
        made = call()
        first = tool.execute(arguments(), made)
        assert tool.execute(arguments(), replace(made, attempt=2, fence=2)) == first
        assert shop.pieces() == 9

    def test_other_arguments_under_the_same_key_are_a_conflict(self, tool: SqlExecute, shop: Shop) -> None:
        made = call()
        tool.execute(arguments(), made)
        found = tool.inspect(arguments(RETURNING, 1, "desk"), made)
        assert isinstance(found, Found)
        assert not found.receipt.arguments_match
        assert not tool.execute(arguments(RETURNING, 1, "desk"), made).arguments_match
        assert (shop.pieces(), shop.pieces("desk")) == (9, 5)

    def test_parameters_are_bound_and_never_read_as_sql(self, tool: SqlExecute, shop: Shop) -> None:
        statement = "INSERT INTO stock (article, pieces, note, at) VALUES ($1, $2, $3, $4)"
        tool.execute(arguments(statement, "x'); DROP TABLE stock; --", 1, {"a": [1, None]}, "2026-11-30"), call())
        (row,) = shop.sql("SELECT article, note, at::text FROM stock WHERE pieces = 1")
        assert row == ("x'); DROP TABLE stock; --", {"a": [1, None]}, "2026-11-30")

    def test_what_json_cannot_carry_comes_back_as_text(self, tool: SqlExecute) -> None:
        statement = (
            "INSERT INTO orders (article, total) VALUES ($1, $2) "
            "RETURNING total, 9007199254740993 AS big, date '2026-11-30' AS at, 'NaN'::float AS nan, "
            "'\\x00ff'::bytea AS raw"
        )
        (returned,) = tool.execute(arguments(statement, "chair", "12345678901234567.89"), call()).facts["returned"]
        assert returned == {
            "total": "12345678901234567.89",
            "big": "9007199254740993",
            "at": "2026-11-30",
            "nan": "nan",
            "raw": "00ff",
        }

    def test_a_passed_deadline_means_that_nothing_was_sent(self, tool: SqlExecute, shop: Shop) -> None:
        with pytest.raises(NotApplied):
            tool.execute(arguments(), call(seconds=-1))
        assert shop.sql("SELECT count(*) FROM checkpoint.effects") == [(0,)]


class TestRefusals:
    """Each leaves the database as it was, and no marker."""

    @pytest.mark.parametrize(
        ("given", "code"),
        [
            ({"statement": "UPDATE stock SET pieces = pieces - 1", "expect_rows": 1}, "unexpected_rows"),
            ({"statement": "UPDATE stock SET pieces = -1"}, "sqlstate_23514"),
            ({"statement": "INSERT INTO orders (article) VALUES ('unknown')"}, "sqlstate_23503"),
            ({"statement": "UPDATE stock SET pieces = 0; DELETE FROM orders"}, "sqlstate_42601"),
            ({"statement": "SELECT repeat('x', 10000)"}, "unkeepable"),
            ({"statement": "SELECT generate_series(1, 101)"}, "unkeepable"),
            ({"statement": "SELECT generate_series(1, 2000000000)"}, "too_many_rows"),
            ({"statement": "DELETE FROM checkpoint.effects"}, "sqlstate_42501"),
            ({"statement": "UPDATE stock SET pieces = $1", "parameters": ["many"]}, "sqlstate_22P02"),
            ({"statement": "UPDATE checkpoint.effects SET fence = 99"}, "marker_touched"),
        ],
        ids=lambda one: one if isinstance(one, str) else None,
    )
    def test_what_the_database_or_a_limit_refuses(
        self, tool: SqlExecute, shop: Shop, given: dict[str, Any], code: str
    ) -> None:
        wanted = arguments(given.pop("statement"), *given.pop("parameters", []), **given)
        with pytest.raises(NotApplied, match="nothing was changed") as refused:
            tool.execute(wanted, call())
        assert (refused.value.code, refused.value.permanent) == (code, True)
        assert (shop.pieces(), shop.pieces("desk")) == (10, 5)
        assert shop.sql("SELECT count(*) FROM checkpoint.effects") == [(0,)]

    def test_a_statement_cannot_make_an_effect_undone(self, tool: SqlExecute, shop: Shop) -> None:
        made = call()
        tool.execute(arguments(), made)
        undo = "UPDATE checkpoint.effects SET done_at = NULL, transaction_id = NULL, row_count = NULL WHERE key = $1"
        with pytest.raises(NotApplied, match="the marker of an effect is final"):
            tool.execute(arguments(undo, made.key), call())
        assert isinstance(tool.inspect(arguments(), replace(made, fence=2)), Found)

    def test_more_rows_than_the_operator_allows(self, shop: Shop) -> None:
        with pytest.raises(NotApplied, match="more than 1 rows") as refused:
            shop.tool(largest_row_count=1).execute(arguments("UPDATE stock SET pieces = 0"), call())
        assert refused.value.permanent
        assert shop.pieces() == 10

    @pytest.mark.parametrize(
        "statement",
        [
            "COMMIT",
            "ROLLBACK",
            "SET ROLE postgres",
            "/* x */ COMMIT",
            "DROP TABLE stock",
            "COPY stock TO '/x'",
            "DO ''",
        ],
    )
    def test_the_schema_lets_no_transaction_control_in(self, statement: str) -> None:
        with pytest.raises(ArgumentsInvalid, match="must be one statement that begins with INSERT"):
            arguments(statement)

    def test_a_database_that_is_not_listed(self, tool: SqlExecute) -> None:
        with pytest.raises(NotApplied, match="not on the list"):
            tool.execute(arguments(database="other"), call())

    def test_a_statement_that_takes_too_long_ends_before_the_deadline(self, tool: SqlExecute, shop: Shop) -> None:
        made = call(seconds=1.0)
        with pytest.raises(NotApplied) as refused:
            tool.execute(arguments("WITH taken AS (UPDATE stock SET pieces = 0) SELECT pg_sleep(60)"), made)
        assert (refused.value.code, refused.value.permanent) == ("sqlstate_57014", False)
        assert made.deadline.remaining() > 0
        assert shop.pieces() == 10

    def test_a_missing_marker_table_is_named(self, shop: Shop) -> None:
        elsewhere = shop.entry.url.rsplit("/", 1)[0] + "/postgres"
        with pytest.raises(NotApplied, match=r"deploy/effect_markers\.sql makes it") as refused:
            shop.tool(url=elsewhere).execute(arguments(), call())
        assert refused.value.permanent

    def test_a_server_that_is_not_there_proves_that_nothing_happened(self, shop: Shop) -> None:
        tool = shop.tool(url="postgresql://shop@127.0.0.1:1/shop")
        with pytest.raises(NotApplied) as refused:
            tool.execute(arguments(), call())
        assert not refused.value.permanent
        assert isinstance(tool.inspect(arguments(), call()), Inconclusive)
        assert isinstance(tool.verify(arguments(), call()), NotVisible)

    def test_a_wrong_password_is_in_no_message(self, shop: Shop) -> None:
        wrong = replace(shop, password="wrong-password-1")
        with pytest.raises(NotApplied, match="password authentication failed") as refused:
            wrong.tool().execute(arguments(), call())
        assert "wrong-password-1" not in str(refused.value)

    def test_the_password_is_taken_out_of_what_comes_back(self, shop: Shop) -> None:
        receipt = shop.tool().execute(arguments("SELECT $1::text AS said", shop.password), call())
        assert receipt.facts["returned"] == [{"said": "[secret SHOP_DATABASE]"}]


class TestLookups:
    def test_a_commit_that_never_arrived_left_nothing(self, shop: Shop, wire: Wire) -> None:
        made, wire.cut = call(), "before"
        with pytest.raises(CommitUnanswered):
            through(wire, shop).execute(arguments(), made)
        assert wait_for(lambda: settled(shop.tool(), made)) == Absent()
        assert shop.pieces() == 10

    def test_a_commit_whose_answer_was_lost_is_found(self, shop: Shop, wire: Wire) -> None:
        made, wire.cut = call(), "after"
        with pytest.raises(CommitUnanswered, match="its answer did not come"):
            through(wire, shop).execute(arguments(), made)
        found = wait_for(lambda: settled(shop.tool(), made))
        assert isinstance(found, Found)
        assert found.receipt.arguments_match
        assert shop.pieces() == 9

    def test_after_an_absence_nothing_that_was_sent_before_can_commit(self, tool: SqlExecute, shop: Shop) -> None:
        late = call()
        assert tool.inspect(arguments(), replace(late, fence=2)) == Absent()
        with pytest.raises(NotApplied, match="a later lookup") as refused:
            tool.execute(arguments(), late)
        assert refused.value.code == "old_fence"
        assert shop.pieces() == 10
        assert tool.execute(arguments(), replace(late, fence=3)).facts["rows"] == 1

    def test_a_transaction_under_way_is_pending_and_never_absent(self, tool: SqlExecute, shop: Shop) -> None:
        made = call()
        thread = threading.Thread(target=tool.execute, args=[arguments("SELECT pg_sleep(2)"), made])
        thread.start()
        wait_for(
            lambda: shop.sql(
                "SELECT 1 FROM pg_stat_activity WHERE query LIKE '%%pg_sleep(2)%%' AND pid <> pg_backend_pid()"
            )
        )
        assert isinstance(tool.inspect(arguments("SELECT pg_sleep(2)"), replace(made, fence=2)), Pending)
        thread.join()
        assert isinstance(tool.inspect(arguments("SELECT pg_sleep(2)"), replace(made, fence=2)), Found)

    def test_two_executions_at_once_make_one_effect(self, tool: SqlExecute, shop: Shop) -> None:
        made = call()
        threads = [threading.Thread(target=tool.execute, args=[arguments(), made]) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert shop.pieces() == 9


def settled(tool: SqlExecute, made: Call) -> Absent | Found | None:
    """What a lookup under a later fence answers, unless the server has not noticed the cut yet."""
    answer = tool.inspect(arguments(), replace(made, fence=made.fence + 1))
    return answer if isinstance(answer, Absent | Found) else None


class TestVerification:
    def test_the_check_reads_what_was_changed(self, tool: SqlExecute, shop: Shop) -> None:
        check = {"query": "SELECT pieces = $1 FROM stock WHERE article = $2", "parameters": [9, "chair"]}
        given, made = arguments("", check=check), call()
        assert isinstance(tool.verify(given, made), NotVisible)
        receipt = tool.execute(given, made)
        assert isinstance(tool.verify(given, committed(made, receipt)), Visible)
        shop.sql("UPDATE stock SET pieces = 1")
        assert isinstance(tool.verify(given, committed(made, receipt)), NotVisible)

    def test_a_check_can_only_read(self, tool: SqlExecute, shop: Shop) -> None:
        query = "WITH gone AS (DELETE FROM stock RETURNING 1) SELECT true FROM gone LIMIT 1"
        given, made = arguments("", check={"query": query}), call()
        seen = tool.verify(given, committed(made, tool.execute(given, made)))
        assert isinstance(seen, NotVisible)
        assert "read-only" in seen.message
        assert shop.pieces() == 9


class TestTheList:
    def test_each_database_has_a_contract_and_the_rest_is_refused(self, tool: SqlExecute) -> None:
        variants = {one.name: one for one in tool.variants()}
        stored = [{"name": one.name, "when": one.when} for one in variants.values()]
        picked = variants[match_variant(stored, {"database": "shop"})].contract
        assert (picked.recovery, picked.can_inspect, picked.can_verify) == (RecoveryClass.IDEMPOTENT, True, True)
        assert "checkpoint.effects" in picked.where_to_look
        assert match_variant(stored, {"database": "other"}) == "unlisted"

    @pytest.mark.parametrize(
        "entry",
        [
            'name = "shop"\nurl = "postgresql://role:password@host/shop"',
            'name = "shop"\nurl = "postgresql://role@host/shop"\nhonours = true',
            'name = "Shop"\nurl = "postgresql://role@host/shop"',
        ],
    )
    def test_a_wrong_entry_is_named(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, entry: str) -> None:
        file = tmp_path / "databases.toml"
        file.write_text(f"[[database]]\n{entry}\n")
        monkeypatch.setenv(sql_databases.SETTING, str(file))
        sql_databases.load.cache_clear()
        with pytest.raises(operator_lists.ListInvalid, match=r"\[\[database\]\] number 1"):
            sql_databases.load()

    def test_the_shipped_list_can_be_read(self) -> None:
        sql_databases.load.cache_clear()
        assert [one.name for one in sql_databases.load().variants()] == ["unlisted"]
