"""Times of a workflow as the database has them: drawn, said, and in a table; the plan by its positions."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from checkpoint import clock
from checkpoint.models import Step, Workflow
from checkpoint.pictures import plan_pictures, timelines
from checkpoint.states import StepStatus
from checkpoint.templatetags.display import lasting
from tests import factories
from tests.console_driver import signed_in

pytestmark = pytest.mark.usefixtures("database")
HOSTILE = "<script>alert(1)</script>\u202e"


def page(workflow: Workflow, query: str = "", teams: Any = None) -> Any:
    person = factories.person(f"reader{Step.objects.count()}{query}"[:20], teams=teams or [workflow.team])
    return signed_in(person).get(f"/workflows/{workflow.pk}/times/{query}")


def told() -> tuple[Workflow, Step]:
    """A workflow of an hour ago: tried twice, asked about, answered, read back."""
    begins = clock.now() - timedelta(hours=1)
    workflow = factories.workflow(created_at=begins)
    step = factories.step(workflow, name=HOSTILE)
    for number in (1, 2):
        at = begins + timedelta(minutes=10 * number)
        factories.attempt(
            step, number=number, fence=number, started_at=at, ended_at=at + timedelta(seconds=30), ending="unknown"
        )
    Step.objects.filter(pk=step.pk).update(
        committed_at=begins + timedelta(minutes=40), verified_at=begins + timedelta(minutes=41)
    )
    factories.case(step, opened_at=begins + timedelta(minutes=21))
    return workflow, step


def test_spans_are_those_of_the_record() -> None:
    workflow, _ = told()
    times = timelines.of(Workflow.objects.get(pk=workflow.pk))
    spans = times.lines[0].spans
    assert [span.kind for span in spans] == ["attempt", "attempt", "question", "reading"]
    assert [round(span.seconds) for span in spans if not span.is_open] == [30, 30, 60]
    assert [span.kind for span in spans if span.is_open] == ["question"]
    assert 3600 <= times.seconds < 3700


def test_the_page_draws_them_says_them_and_escapes_what_a_stranger_named() -> None:
    workflow, _ = told()
    text = page(workflow).text
    assert text.count("<rect ") == 4
    assert "attempt 1: unknown, 30.0 s" in text
    assert "The same as a table" in text
    assert "<script>alert" not in text
    assert "\u202e" not in text


def test_zooming_leaves_out_what_lies_outside() -> None:
    workflow, _ = told()
    closer = page(workflow, "?from=590&to=700")
    assert [bar.span.words for _, bars in closer.context["lines"] for bar in bars] == ["attempt 1: unknown"]
    assert "All of it" in closer.text
    (bar,) = closer.context["lines"][0][1]
    assert 80 < bar.x < 100
    assert 270 < bar.width < 275
    for nonsense in ("?from=nan&to=inf", "?from=9&to=1", "?from=-5&to=1", "?from=1e9&to=2e9", "?from=x"):
        assert page(workflow, nonsense).context["window"].is_whole


def test_a_long_plan_is_read_in_pages_and_few_statements(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(timelines, "STEPS_SHOWN", 2)
    workflow = factories.workflow()
    steps = [factories.step(workflow, StepStatus.STARTED, position=position) for position in (1, 1, 2, 3, 3)]
    seen, after = [], None
    for _ in range(3):
        with CaptureQueriesContext(connection) as captured:
            times = timelines.of(workflow, after=after)
        assert len(captured) <= 6
        assert not any('"arguments"' in query["sql"] or '"template"' in query["sql"] for query in captured)
        seen += [line.step.pk for line in times.lines]
        after = times.following
    assert (seen, after) == ([step.pk for step in steps], None)


def test_a_plan_is_counted_by_position(monkeypatch: pytest.MonkeyPatch) -> None:
    workflow = factories.workflow()
    for position, status in ((1, "verified"), (2, "verified"), (2, "verified"), (2, "uncertain"), (3, "planned")):
        factories.step(workflow, StepStatus(status), position=position)
    picture = plan_pictures.of(workflow)
    assert [(stage.position, dict(stage.states)) for stage in picture.stages] == [
        (1, {"verified": 1}),
        (2, {"uncertain": 1, "verified": 2}),
        (3, {"planned": 1}),
    ]
    assert "and 2 side by side" in page(workflow).text
    monkeypatch.setattr(plan_pictures, "POSITIONS_SHOWN", 2)
    assert plan_pictures.of(workflow).more


def test_nobody_sees_the_times_of_what_they_may_not_see() -> None:
    workflow, _ = told()
    assert page(workflow, teams=[factories.team("Legal")]).status_code == 404


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [(0.0123, "12 ms"), (1.25, "1.2 s"), (60, "1 min"), (125, "2 min 5 s"), (7500, "2 h 5 min"), (180_000, "2 d 2 h")],
)
def test_times_are_said_in_their_two_largest_units(seconds: float, expected: str) -> None:
    assert lasting(seconds) == expected
