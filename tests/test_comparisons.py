"""What was sent beside what was found, and the page of one piece of evidence."""

from __future__ import annotations

from typing import Any

import pytest

from checkpoint.explaining.comparisons import MOST_MEMBERS, Verdict, compare
from checkpoint.states import StepStatus
from tests import factories
from tests.console_driver import signed_in


def told(sent: Any, found: Any) -> list[tuple[str, str, str, str]]:
    return [(member.place, member.sent, member.found, member.verdict.value) for member in compare(sent, found)]


@pytest.mark.parametrize(
    ("sent", "found", "expected"),
    [
        ({"a": 1}, {"a": 1}, [("/a", "1", "1", "same")]),
        ({"a": 1}, {"a": 2}, [("/a", "1", "2", "different")]),
        ({"a": 1}, {"a": "1"}, [("/a", "1", '"1"', "different")]),
        ({"a": 1}, {"a": True}, [("/a", "1", "true", "different")]),
        ({"body": {"amount": 5}}, {"amount": 5}, [("/amount", "5", "5", "same")]),
        (
            {"x": {"amount": 5}, "y": {"amount": 6}},
            {"amount": 5},
            [
                ("/amount", "", "5", "only found"),
                ("/x/amount", "5", "", "only sent"),
                ("/y/amount", "6", "", "only sent"),
            ],
        ),
        ({"a": []}, {"a": [1]}, [("/a/0", "", "1", "only found"), ("/a", "[]", "", "only sent")]),
        ({"a/b~": 1}, {}, [("", "", "{}", "only found"), ("/a~1b~0", "1", "", "only sent")]),
        (None, "x", [("", "null", '"x"', "different")]),
    ],
)
def test_members_are_matched_by_place_else_by_a_name_that_is_there_once(
    sent: Any, found: Any, expected: list[tuple[str, str, str, str]]
) -> None:
    assert told(sent, found) == expected


def test_what_differs_comes_first_and_there_is_an_end() -> None:
    found = {str(number): number for number in range(MOST_MEMBERS * 2)}
    members = compare(found | {"7": 8}, found)
    assert len(members) == MOST_MEMBERS
    assert members[0].verdict is Verdict.DIFFERENT


@pytest.mark.usefixtures("database")
def test_the_page_shows_it_escaped_and_says_when_the_record_was_changed() -> None:
    step = factories.step(factories.workflow(), StepStatus.STARTED)
    facts = {"amount_cents": 12800, "card": "tok_91", "note": "<script>x</script>\u202e", "url": "https://evil.example"}
    item = factories.evidence(step, facts=facts)
    client = signed_in(factories.person("ada", groups=["Operator"], teams=[step.workflow.team]))
    text = client.get(f"/evidence/{item.pk}/").text
    assert text.index("/amount_cents") < text.index("/card")
    assert "<script>x" not in text
    assert "\u202e" not in text
    assert 'href="https://evil' not in text
    assert "This is not what was recorded" not in text
    other = factories.evidence(step, facts=facts, sha256="0" * 64)
    assert "This is not what was recorded" in client.get(f"/evidence/{other.pk}/").text
    stranger = signed_in(factories.person("eve", groups=["Operator"], teams=[factories.team("Legal")]))
    assert stranger.get(f"/evidence/{item.pk}/").status_code == 404
