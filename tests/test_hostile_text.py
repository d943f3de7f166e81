"""What an agent, a tool or a provider wrote cannot deceive: no markup, no links, nothing invisible, bounded."""

from __future__ import annotations

import json
import re
from html import escape, unescape

import pytest
from hypothesis import given
from hypothesis import strategies as st

from approvals.where_to_look import place
from checkpoint.canonical import canonical
from checkpoint.contracts import Contract
from checkpoint.explaining.hostile_text import json_lines, preview, visible
from checkpoint.models import Case
from checkpoint.states import StepStatus
from checkpoint.templatetags.display import json_text
from tests import factories
from tests.console_driver import signed_in

SCRIPT = '<script>alert(1)</script><img src=x onerror=alert(2)><a href="https://evil.example/">look</a>'
OVERRIDE = "pay \u202e0001 to\u2066 bob\u200b\U000e0041\u00ad"
HOSTILE = f"{SCRIPT} {OVERRIDE} https://evil.example/login"


@given(st.text())
def test_visible_text_is_escaped_and_holds_nothing_hidden(text: str) -> None:
    shown = visible(text)
    assert not re.search("[\u202a-\u202e\u2066-\u2069\u200b-\u200f\x00-\x08\ufeff\U000e0000-\U000e0fff]", shown)
    assert not re.search(r"<(?!/?span)", shown)


@pytest.mark.parametrize("character", list("\u202e\u2066\u200b\u00ad\ufeff\x00\x1b\u2028\u3164\U000e0041\ue000\r"))
def test_each_hidden_character_shows_its_code(character: str) -> None:
    assert f">U+{ord(character):04X}</span>" in visible(f"a{character}b")


@pytest.mark.parametrize("text", ["plain", "two\nlines\tand\r\ntabs", "Straße, 東京, עברית, 👍🏽"])
def test_ordinary_text_of_any_language_stays_as_it_is(text: str) -> None:
    assert visible(text) == text


def test_a_preview_is_cut_and_says_by_how_much() -> None:
    assert "9,990 more characters" in preview("x" * 10_000, 10)
    assert preview("short", 10) == "short"


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-1000, 1000) | st.text(),
    lambda children: st.lists(children) | st.dictionaries(st.text(), children),
)


@given(_JSON)
def test_lines_of_json_joined_are_the_same_text(value: object) -> None:
    text = json.dumps(value, ensure_ascii=False)
    assert "".join(line for _, line in json_lines(text)) == text
    assert "".join(line for _, line in json_lines(text[:-1])) == text[:-1]


_CODE = re.compile('<span class="hidden-character"[^>]*>U\\+([0-9A-F]+)</span>')


@given(_JSON)
def test_json_on_a_page_is_the_text_but_for_hidden_characters(value: object) -> None:
    text = json.dumps(value, ensure_ascii=False)
    with_characters = _CODE.sub(lambda code: escape(chr(int(code.group(1), 16))), json_text(text))
    assert unescape(re.sub(r"</?(span|code|b)\b[^>]*>", "", with_characters)) == text


@pytest.mark.usefixtures("database")
def test_hostile_text_in_every_field_is_harmless_on_every_page() -> None:
    workflow = factories.workflow(
        goal=HOSTILE,
        kind=HOSTILE[:60],
        prompt_version=HOSTILE[:100],
        constraints=[HOSTILE],
        input=canonical({"a": HOSTILE}),
    )
    arguments = {"memo": HOSTILE, HOSTILE: [HOSTILE]}
    step = factories.step(workflow, StepStatus.COMMITTED, name=HOSTILE[:100], arguments=arguments)
    factories.evidence(step, source=HOSTILE, operation_id=HOSTILE, facts={"text": HOSTILE})
    factories.move(step, StepStatus.UNCERTAIN, operation_id=HOSTILE)
    lines = {"known": [HOSTILE], "unknown": [HOSTILE], "tried": [HOSTILE], "said": HOSTILE}
    case = factories.case(step, sentence=HOSTILE, findings=lines)
    factories.audited(workflow, "start", HOSTILE, reason=HOSTILE, before=HOSTILE, after=HOSTILE)
    approver = signed_in(factories.person("ada", groups=["Approver"], teams=[workflow.team]))
    for address in ("/review/", "/workflows/", f"/workflows/{workflow.pk}/", f"/cases/{case.pk}/"):
        page = approver.get(address).text
        assert "<script>alert" not in page
        assert "<img" not in page
        assert 'href="https://evil' not in page
        assert not re.search("[\u202e\u2066\u200b\U000e0041]", page), address
        assert "U+202E" in page


@pytest.mark.usefixtures("database")
def test_large_text_is_cut_in_lists_but_whole_where_a_decision_is_taken() -> None:
    workflow = factories.workflow(goal="g" * 3_000_000, constraints=["c" * 100_000])
    step = factories.step(workflow, StepStatus.UNCERTAIN, arguments={"memo": "m" * 300_000})
    case = factories.case(step)
    client = signed_in(factories.person("grace", groups=["Auditor"]))
    for address in ("/review/", "/workflows/"):
        assert len(client.get(address).content) < 20_000
    assert len(client.get(f"/workflows/{workflow.pk}/").content) < 60_000
    assert "m" * 300_000 in client.get(f"/cases/{case.pk}/").text
    assert Case.objects.count() == 1


def test_the_link_to_a_place_to_look_holds_what_it_was_given_and_no_more() -> None:
    assert place(factories.CHARGE, key="a b&c=<d>/../", operation_id="").link == (
        "https://cards.example/search?q=a%20b%26c%3D%3Cd%3E%2F..%2F"
    )


@pytest.mark.parametrize(
    "link",
    ["javascript:alert(1)//{key}", "data:text/html,{key}", "https://{operation_id}/", "//evil.example/{key}", ""],
)
def test_a_link_that_could_lead_elsewhere_is_none(link: str) -> None:
    contract = Contract(recovery=factories.CHARGE.recovery, reversibility=factories.CHARGE.reversibility, link=link)
    assert place(contract, key="k", operation_id="evil.example").link == ""


def test_a_link_that_needs_an_operation_id_waits_for_one() -> None:
    contract = Contract(
        recovery=factories.CHARGE.recovery,
        reversibility=factories.CHARGE.reversibility,
        link="https://cards.example/{operation_id}",
    )
    assert place(contract, key="k", operation_id="").link == ""
    assert place(contract, key="k", operation_id="op/1").link == "https://cards.example/op%2F1"
