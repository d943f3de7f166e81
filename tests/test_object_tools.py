"""`object.put` and `object.delete` against a real S3-compatible server: exact after a crash, never over another's."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from checkpoint.contracts import RecoveryClass, Reversibility
from checkpoint.errors import ArgumentsInvalid
from checkpoint.outcomes import Absent, Found, Inconclusive, NotApplied, NotVisible, Receipt, Visible
from checkpoint.planning.argument_schemas import closed, match_variant, prepare_arguments
from tests.case_driver import at_once, raised
from tests.http_driver import call as call_with
from tests.http_driver import committed
from tests.object_server import SECRETS, ObjectServer, serve
from workers.registry import Call
from workers.tools.object_arguments import DeleteArguments, PutArguments
from workers.tools.object_buckets import BucketList
from workers.tools.object_delete import ObjectDelete
from workers.tools.object_put import ObjectPut
from workers.tools.object_store import Store, StoreSilent
from workers.tools.secrets import Secrets

PUT, DELETE = closed(PutArguments.model_json_schema()), closed(DeleteArguments.model_json_schema())


def call() -> Call:
    """With time enough for several requests to a busy machine."""
    return call_with(seconds=100.0)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ObjectServer]:
    yield from serve(tmp_path_factory.mktemp("objects"))


@pytest.fixture(params=["plain", "kept", "careless"])
def bucket(request: pytest.FixtureRequest) -> str:
    """Plain, versioned, and one whose operator promises nothing."""
    return str(request.param)


@pytest.fixture
def buckets(server: ObjectServer) -> BucketList:
    careless = {"bucket": "plain-bucket", "conditional_writes": False, "conditional_deletes": False}
    return BucketList([server.bucket(), server.bucket("kept"), server.bucket("careless", **careless)])


@pytest.fixture
def put(buckets: BucketList) -> ObjectPut:
    return ObjectPut(buckets, Secrets(SECRETS))


@pytest.fixture
def delete(buckets: BucketList) -> ObjectDelete:
    return ObjectDelete(buckets, Secrets(SECRETS))


@pytest.fixture
def key(request: pytest.FixtureRequest) -> str:
    """A key of the test's own."""
    return f"reports/{hashlib.sha256(request.node.nodeid.encode()).hexdigest()[:12]} ä.txt"


def putting(bucket: str, key: str, body: Any = "v1", **more: Any) -> PutArguments:
    text = prepare_arguments(PUT, {"bucket": bucket, "key": key, "body": body, **more})
    return PutArguments.model_validate_json(text, strict=True)


def deleting(bucket: str, key: str, etag: str) -> DeleteArguments:
    text = prepare_arguments(DELETE, {"bucket": bucket, "key": key, "etag": etag})
    return DeleteArguments.model_validate_json(text, strict=True)


def etag_of(receipt: Receipt) -> str:
    return str(receipt.facts["etag"])


def content(server: ObjectServer, bucket: str, key: str) -> bytes:
    name = "kept-bucket" if bucket == "kept" else "plain-bucket"
    body: bytes = server.client.get_object(Bucket=name, Key=key)["Body"].read()
    return body


def test_a_new_object_is_stored_found_and_read_back(
    put: ObjectPut, server: ObjectServer, bucket: str, key: str
) -> None:
    arguments, made = putting(bucket, key), call()
    receipt = put.execute(arguments, made)
    assert content(server, bucket, key) == b"v1"
    assert receipt.facts["sha256"] == hashlib.sha256(b"v1").hexdigest()
    assert bool(receipt.facts["version"]) == (bucket == "kept")
    found = put.inspect(arguments, made)
    assert isinstance(found, Found)
    assert (found.receipt.operation_id, found.receipt.arguments_match) == (receipt.operation_id, True)
    assert isinstance(put.verify(arguments, committed(made, receipt)), Visible)
    assert put.execute(arguments, made).operation_id == receipt.operation_id, "again: the same object, not another"
    if bucket == "kept":
        versions = server.client.list_object_versions(Bucket="kept-bucket", Prefix=key)["Versions"]
        assert len(versions) == 1


def test_nothing_there_is_absent_and_a_taken_key_is_refused(put: ObjectPut, bucket: str, key: str) -> None:
    mine, theirs = call(), call()
    assert isinstance(put.inspect(putting(bucket, key), mine), Absent)
    put.execute(putting(bucket, key, "theirs"), theirs)
    with pytest.raises(NotApplied, match="already") as refusal:
        put.execute(putting(bucket, key), mine)
    assert (refusal.value.code, refusal.value.permanent) == ("exists", True)
    found = put.inspect(putting(bucket, key), mine)
    assert isinstance(found, Found)
    assert not found.receipt.arguments_match, "other bytes lie there: a person is asked"


def test_of_many_who_create_at_once_one_does(put: ObjectPut, server: ObjectServer, key: str) -> None:
    outcomes = at_once(*[lambda n=n: put.execute(putting("plain", key, f"v{n}"), call()) for n in range(6)])
    refusals = raised(outcomes)
    assert (len(refusals), {type(refusal) for refusal in refusals}) == (5, {NotApplied})
    (winner,) = [outcome for outcome in outcomes if isinstance(outcome, Receipt)]
    assert hashlib.sha256(content(server, "plain", key)).hexdigest() == winner.facts["sha256"]


def test_two_attempts_of_one_step_at_once_make_one_object(put: ObjectPut, server: ObjectServer, key: str) -> None:
    arguments, made = putting("kept", key), call()
    outcomes = at_once(*[lambda: put.execute(arguments, made) for _ in range(4)])
    assert len({outcome.operation_id for outcome in outcomes}) == 1, outcomes
    assert len(server.client.list_object_versions(Bucket="kept-bucket", Prefix=key)["Versions"]) == 1


def test_replacing_wants_the_object_that_was_seen(put: ObjectPut, server: ObjectServer, bucket: str, key: str) -> None:
    first = put.execute(putting(bucket, key), call())
    made, arguments = call(), putting(bucket, key, "v2", mode="replace", etag=etag_of(first))
    assert isinstance(put.inspect(arguments, made), Absent), "the object to replace is still there"
    second = put.execute(arguments, made)
    assert content(server, bucket, key) == b"v2"
    assert isinstance(put.inspect(arguments, made), Found)
    with pytest.raises(NotApplied, match=f"it has the ETag {etag_of(second)}") as refusal:
        put.execute(putting(bucket, key, "v3", mode="replace", etag=etag_of(first)), call())
    assert refusal.value.code == "changed"
    third = call()
    put.execute(putting(bucket, key, "newer", mode="replace", etag=etag_of(second)), third)
    found = put.inspect(arguments, made)
    assert isinstance(found, Found)
    assert not found.receipt.arguments_match, "somebody's newer object is not written over"


def test_an_object_to_replace_that_is_gone_cannot_tell(put: ObjectPut, server: ObjectServer, key: str) -> None:
    arguments = putting("plain", key, "v2", mode="replace", etag="0" * 32)
    assert isinstance(put.inspect(arguments, call()), Inconclusive)
    with pytest.raises(NotApplied, match="there is none"):
        put.execute(arguments, call())


@pytest.mark.parametrize("stored", ["plain", "careless"])
def test_the_store_itself_refuses_what_came_between_look_and_put(
    put: ObjectPut, server: ObjectServer, key: str, stored: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The difference that `conditional_writes` makes: without it, this window is open."""
    monkeypatch.setattr(Store, "look", _blind_once(Store.look))
    server.client.put_object(Bucket="plain-bucket", Key=key, Body=b"theirs")
    if stored == "careless":
        put.execute(putting(stored, key), call())
        assert content(server, stored, key) == b"v1"
        return
    with pytest.raises(NotApplied, match="already"):
        put.execute(putting(stored, key), call())
    assert content(server, stored, key) == b"theirs"


def _blind_once(look: Any) -> Any:
    seen: list[None] = []

    def blind(self: Store) -> Any:
        seen.append(None)
        return None if len(seen) == 1 else look(self)

    return blind


def test_bytes_that_changed_since_do_not_verify(put: ObjectPut, server: ObjectServer, key: str) -> None:
    arguments, made = putting("plain", key), call()
    receipt = put.execute(arguments, made)
    server.client.put_object(Bucket="plain-bucket", Key=key, Body=b"v9")
    seen = put.verify(arguments, committed(made, receipt))
    assert isinstance(seen, NotVisible)
    assert "other bytes" in seen.message


def test_we_deleted_it_and_it_was_already_gone_are_different_receipts(
    put: ObjectPut, delete: ObjectDelete, server: ObjectServer, bucket: str, key: str
) -> None:
    arguments, made = deleting(bucket, key, etag_of(put.execute(putting(bucket, key), call()))), call()
    assert isinstance(delete.inspect(arguments, made), Absent)
    receipt = delete.execute(arguments, made)
    assert receipt.facts["outcome"] == "deleted"
    assert bool(receipt.facts["marker"]) == (bucket == "kept")
    assert isinstance(delete.verify(arguments, committed(made, receipt)), Visible)
    found = delete.inspect(arguments, made)
    assert isinstance(found, Found)
    assert found.receipt.facts["outcome"] == "gone", "by whom, a lookup cannot tell"
    assert delete.execute(arguments, call()).facts["outcome"] == "already_gone"
    if bucket == "kept":
        kept = server.client.list_object_versions(Bucket="kept-bucket", Prefix=key)
        assert (len(kept["Versions"]), len(kept["DeleteMarkers"])) == (1, 1), "nothing is lost, and one marker"


def test_another_object_is_not_deleted(put: ObjectPut, delete: ObjectDelete, bucket: str, key: str) -> None:
    first = put.execute(putting(bucket, key), call())
    arguments = deleting(bucket, key, etag_of(first))
    put.execute(putting(bucket, key, "v2", mode="replace", etag=etag_of(first)), call())
    with pytest.raises(NotApplied, match="another object by now"):
        delete.execute(arguments, call())
    found = delete.inspect(arguments, call())
    assert isinstance(found, Found)
    assert not found.receipt.arguments_match
    assert isinstance(put.verify(putting(bucket, key, "v2"), call()), Visible)


def test_what_each_bucket_can_be_relied_on_for(put: ObjectPut, delete: ObjectDelete) -> None:
    def promises(tool: Any, schema: Any, given: dict[str, Any]) -> tuple[RecoveryClass, Reversibility]:
        variants = {variant.name: variant for variant in tool.variants()}
        stored = [{"name": v.name, "when": v.when, "contract": v.contract.to_json()} for v in variants.values()]
        contract = variants[match_variant(stored, given)].contract
        assert contract.where_to_look
        return contract.recovery, contract.reversibility

    create, swap = {"key": "k", "body": "b"}, {"key": "k", "body": "b", "mode": "replace", "etag": "e"}
    gone = {"key": "k", "etag": "e"}
    queryable, compensable, lost = RecoveryClass.QUERYABLE, Reversibility.COMPENSABLE, Reversibility.IRREVERSIBLE
    assert promises(put, PUT, {"bucket": "plain", **create}) == (RecoveryClass.IDEMPOTENT, compensable)
    assert promises(put, PUT, {"bucket": "careless", **create}) == (queryable, compensable)
    assert promises(put, PUT, {"bucket": "plain", **swap}) == (queryable, lost)
    assert promises(put, PUT, {"bucket": "kept", **swap}) == (queryable, compensable)
    assert promises(delete, DELETE, {"bucket": "plain", **gone}) == (queryable, lost)
    assert promises(delete, DELETE, {"bucket": "kept", **gone}) == (queryable, compensable)
    assert promises(put, PUT, {"bucket": "unknown", **create}) == (RecoveryClass.OPAQUE, lost)


def test_a_bucket_on_no_list_a_missing_secret_and_a_store_that_is_away_send_nothing(
    put: ObjectPut, server: ObjectServer, key: str
) -> None:
    with pytest.raises(NotApplied, match="has no 'other'"):
        put.execute(putting("other", key), call())
    with pytest.raises(NotApplied, match="CHECKPOINT_SECRET_TEST_ID is not set"):
        ObjectPut(BucketList([server.bucket()]), Secrets({})).execute(putting("plain", key), call())
    away = BucketList([server.bucket(endpoint="http://127.0.0.1:9")])
    with pytest.raises(NotApplied, match="nothing was sent"):
        ObjectPut(away, Secrets(SECRETS)).execute(putting("plain", key), call())


def test_a_wrong_secret_is_refused_and_stands_in_no_message(server: ObjectServer, key: str) -> None:
    wrong = {**SECRETS, "CHECKPOINT_SECRET_TEST_KEY": "another-secret-key"}
    with pytest.raises((NotApplied, StoreSilent)) as refusal:
        ObjectPut(BucketList([server.bucket()]), Secrets(wrong)).execute(putting("plain", key), call())
    assert not any(secret in str(refusal.value) for secret in wrong.values())


def test_it_says_that_it_sends_at_the_last_moment_and_not_after_the_deadline(put: ObjectPut, key: str) -> None:
    noted: list[str] = []

    class Slot:
        def sending(self) -> None:
            noted.append("sending")

        def answered(self, receipt: Receipt) -> None:
            noted.append("answered")

    made = replace(call(), flight=Slot())
    put.execute(putting("plain", key), made)
    assert noted == ["sending"]
    with pytest.raises(NotApplied, match="already"):
        put.execute(putting("plain", key, "v2"), replace(call(), flight=Slot()))
    assert noted == ["sending"], "what was refused after the look was never sent"


def test_nothing_outside_of_the_prefix_is_reached(server: ObjectServer, key: str) -> None:
    tool = ObjectPut(BucketList([server.bucket(prefix="agents/")]), Secrets(SECRETS))
    tool.execute(putting("plain", key), call())
    assert content(server, "plain", f"agents/{key}") == b"v1"


@pytest.mark.parametrize(
    "given",
    [
        *({"key": key} for key in ("/a", "a\n", "", ".", "../a", "a/../b", "a//b", "a/", "x" * 1025)),
        {"bucket": "No"}, {"mode": "replace"}, {"etag": "e"}, {"mode": "overwrite"}, {"access_key": "x"},
        {"body": {"artifact": "sha256:0"}}, {"body": {"artifact": "md5:x"}},
    ],
)  # fmt: skip
def test_arguments_that_make_no_sense_are_refused(given: dict[str, Any]) -> None:
    with pytest.raises(ArgumentsInvalid):
        prepare_arguments(PUT, {"bucket": "plain", "key": "k", "body": "b", **given})


def test_inspection_says_when_the_store_cannot_be_asked(server: ObjectServer, key: str) -> None:
    away = BucketList([server.bucket(endpoint="http://127.0.0.1:9")])
    made: Call = call()
    assert isinstance(ObjectPut(away, Secrets(SECRETS)).inspect(putting("plain", key), made), Inconclusive)
    assert isinstance(ObjectDelete(away, Secrets(SECRETS)).inspect(deleting("plain", key, "e"), made), Inconclusive)
