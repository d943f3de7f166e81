"""What the explorer explores: workflows of every tool that ships, in every recovery class that it has."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from tests import effects
from tests.proof import persons
from tests.proof.houses import WANTED
from tests.proof.outside import Outside
from tests.proof.persons import Person

Steps = list[dict[str, Any]]
Make = Callable[[Outside, str], Steps]


@dataclass(frozen=True)
class Subject:
    """What one run submits.

    Attributes:
        steps: makes the steps of one workflow, for a run with a name of its own.
        workflows: so many with the same steps.
        opaque: a call of it that is cut in mid-air can become a question.
        person: what a person does while workers have nothing to do.
        in_flight: so many calls of its tool may be made at once.
    """

    name: str
    steps: Make
    workflows: int = 1
    opaque: bool = False
    person: Person = persons.nobody
    in_flight: int | None = None


def _step(tool: str, *, name: str = "step", **arguments: Any) -> dict[str, Any]:
    return {"name": name, "tool": tool, "arguments": arguments}


def _http(*kinds: effects.EffectKind, **members: Any) -> Make:
    return lambda outside, run: [{**kind.step(outside.sandbox), **members} for kind in kinds]


def _read(outside: Outside, run: str) -> Steps:
    return [_step("http.request", method="GET", url=f"{outside.sandbox.url}/tickets?reference={run}")]


def _intent(kind: effects.EffectKind) -> Make:
    return lambda outside, run: [{**kind.step(outside.sandbox), "intent": f"intent/{run}"}]


def _beside(kind: effects.EffectKind, count: int) -> Make:
    """So many at one position."""
    return lambda outside, run: [
        {**kind.step(outside.sandbox), "name": f"step_{number}", "position": 1} for number in range(count)
    ]


def _new_file(outside: Outside, run: str) -> Steps:
    return [_step("file.write", path=f"{run}.txt", content=WANTED, mode="if_absent")]


def _overwritten_file(outside: Outside, run: str) -> Steps:
    outside.files.put(f"{run}.txt")
    return [_step("file.write", path=f"{run}.txt", content=WANTED)]


def _deleted_file(outside: Outside, run: str) -> Steps:
    outside.files.put(f"{run}.txt")
    return [_step("file.delete", path=f"{run}.txt")]


def _mail(account: str) -> Make:
    def steps(outside: Outside, run: str) -> Steps:
        outside.mail.open()
        message: dict[str, Any] = {
            "to": ["dana@example.com"],
            "subject": "Invoice 7 is due",
            "text": f"Dear Dana, {run}",
        }
        return [_step("email.send", account=account, **message)]

    return steps


def _command(name: str) -> Make:
    return lambda outside, run: [_step("command.run", command=name)]


def _new_object(outside: Outside, run: str) -> Steps:
    outside.store.open()
    return [_step("object.put", bucket="kept", key=run, body=WANTED)]


def _replaced_object(outside: Outside, run: str) -> Steps:
    return [_step("object.put", bucket="kept", key=run, body=WANTED, mode="replace", etag=outside.store.put(run))]


def _deleted_object(outside: Outside, run: str) -> Steps:
    return [_step("object.delete", bucket="kept", key=run, etag=outside.store.put(run))]


def _sold_chair(outside: Outside, run: str) -> Steps:
    outside.database.stock(run)
    statement = "UPDATE stock SET pieces = pieces - 1 WHERE article = $1"
    return [_step("sql.execute", database="shop", statement=statement, parameters=[run])]


def _event(destination: str) -> Make:
    def steps(outside: Outside, run: str) -> Steps:
        outside.events.open(destination)
        return [_step("outbox.publish", destination=destination, type="com.example.paid", data={"run": run})]

    return steps


def _waited(outside: Outside, run: str) -> Steps:
    return [_step("wait.until", seconds=3600), effects.KEYED.step(outside.sandbox)]


def _asked(outside: Outside, run: str) -> Steps:
    form = {"properties": {"account": {"type": "string", "maxLength": 30}}, "required": ["account"]}
    return [_step("human.task", title="Which account?", form=form), effects.KEYED.step(outside.sandbox)]


SUBJECTS = (
    Subject("read_only", _read),
    Subject("idempotent", _http(effects.KEYED)),
    Subject("idempotent_with_lookup", _http(effects.KEYED_LOOKED_UP)),
    Subject("queryable", _http(effects.QUERYABLE)),
    Subject("opaque", _http(effects.OPAQUE), opaque=True),
    Subject("sequence", _http(effects.OPAQUE, effects.QUERYABLE), opaque=True),
    Subject("file_new", _new_file),
    Subject("file_overwritten", _overwritten_file),
    Subject("file_deleted", _deleted_file),
    Subject("mail", _mail("blind"), opaque=True),
    Subject("mail_with_lookup", _mail("office")),
    Subject("command", _command("unchecked"), opaque=True),
    Subject("command_with_check", _command("checked")),
    Subject("object_new", _new_object),
    Subject("object_replaced", _replaced_object),
    Subject("object_deleted", _deleted_object),
    Subject("sql", _sold_chair),
    Subject("event_to_redis", _event("stream"), opaque=True),
    Subject("event_to_rabbitmq", _event("queue"), opaque=True),
    Subject("wait", _waited),
    Subject("human_task", _asked, person=persons.answers_tasks),
    Subject("compensation", _http(effects.QUERYABLE), person=persons.has_it_undone),
    Subject("intent", _intent(effects.KEYED), workflows=2),
    Subject("intent_opaque", _intent(effects.OPAQUE), workflows=2, opaque=True),
    Subject("limited", _beside(effects.QUERYABLE, 2), in_flight=1),
)


def named(names: Sequence[str]) -> list[Subject]:
    """Those of these names; all, where none are given.

    Raises:
        SystemExit: there is none of a name.
    """
    if unknown := set(names) - {subject.name for subject in SUBJECTS}:
        raise SystemExit(f"unknown: {', '.join(sorted(unknown))}. There are {', '.join(one.name for one in SUBJECTS)}")
    return [subject for subject in SUBJECTS if not names or subject.name in names]
