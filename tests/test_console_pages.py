"""Lists, the workflow page, fragments for htmx, and downloads."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from checkpoint import workflow_lists
from checkpoint.models import Case
from checkpoint.states import StepStatus
from tests import factories
from tests.console_driver import HTMX, signed_in

pytestmark = pytest.mark.usefixtures("database")


@pytest.fixture
def auditor(database: object) -> Client:
    return signed_in(factories.person("grace", groups=["Auditor"]))


def again(client: Client, address: str, first: Any) -> Any:
    """Asks as htmx does once it has had an answer."""
    return client.get(address, headers={**HTMX, "HX-PTag": first["HX-PTag"]})


def test_a_poll_gets_nothing_until_something_moves(auditor: Client) -> None:
    case = factories.case()
    for address in ("/review/", "/workflows/", f"/workflows/{case.workflow_id}/", f"/cases/{case.pk}/"):
        first = auditor.get(address, headers=HTMX)
        assert first.status_code == 200
        assert "<html" not in first.text
        assert again(auditor, address, first).status_code in {200, 204}  # 200 where a shown age grew meanwhile
    address = f"/cases/{case.pk}/"
    first = auditor.get(address, headers=HTMX)
    assert again(auditor, address, first).status_code == 204
    factories.evidence(case.step, finding="found")
    assert "found" in again(auditor, address, first).text


def test_page_and_fragment_of_one_address_are_not_mixed_up_by_a_cache(auditor: Client) -> None:
    answered = auditor.get("/review/")
    assert "HX-Request" in answered["Vary"]
    assert "no-cache" in answered["Cache-Control"]


def test_a_fragment_brings_the_number_of_open_questions(auditor: Client) -> None:
    factories.case()
    assert 'id="nav-review"' in auditor.get("/workflows/", headers=HTMX).text


def test_the_queue_says_what_is_asked_and_why_in_words(auditor: Client) -> None:
    case = factories.case()
    page = auditor.get("/review/").text
    for shown in ("Did it happen?", "cannot be undone", case.sentence, "charge_card", "card.charge@1", "Refund order"):
        assert shown in page
    Case.objects.filter(pk=case.pk).update(status="settled", closed_at=case.opened_at)
    assert "No open questions." in auditor.get("/review/").text


def test_long_lists_come_in_pages(auditor: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workflow_lists, "PAGE_SIZE", 1)
    monkeypatch.setattr("approvals.inbox.review_queue.PAGE_SIZE", 1)
    first, second = factories.case(), factories.case()
    assert f'href="?after={first.pk}"' in auditor.get("/review/").text
    assert str(second.pk) in auditor.get(f"/review/?after={first.pk}").text
    page = auditor.get("/workflows/?kind=refund")
    assert f"?kind=refund&amp;before={second.workflow_id}" in page.text
    assert str(first.workflow_id) in auditor.get(f"/workflows/?kind=refund&before={second.workflow_id}").text


@pytest.mark.parametrize(
    "query",
    ["after=x", "before=x", "search=%00", "status=nonsense", "team=%F0%9F%98%80", "asked=x", "%00=%00"]
    + [f"{name}=a%00" for name in ("status", "kind", "team", "workflow_kind", "tool", "question")],
)
def test_odd_queries_are_harmless(auditor: Client, query: str) -> None:
    factories.case()
    for page in ("/review/", "/workflows/"):
        assert auditor.get(f"{page}?{query}").status_code == 200


@pytest.mark.parametrize("page", ["/review/", "/workflows/", "/audit/", "/policies/", "/people/"])
def test_whether_a_page_is_there_can_be_asked_without_reading_it(auditor: Client, page: str) -> None:
    assert auditor.head(page).status_code == auditor.get(page).status_code


def test_the_filter_narrows_and_shows_what_it_is(auditor: Client) -> None:
    factories.workflow(goal="Publish prices", kind="publishing")
    factories.workflow(goal="Send invoices", kind="invoicing")
    page = auditor.get("/workflows/?search=prices&kind=publishing").text
    assert "Publish prices" in page
    assert "Send invoices" not in page
    assert 'value="prices"' in page
    assert "Nothing matches." in auditor.get("/workflows/?search=nothing+like+it").text


def test_the_workflow_page_tells_the_whole_story(auditor: Client) -> None:
    workflow = factories.workflow(input='{"order":1007}')
    factories.step(workflow, StepStatus.VERIFIED, name="open_ticket")
    asked = factories.step(workflow, StepStatus.UNCERTAIN, name="charge_card", position=2)
    factories.step(workflow, StepStatus.STARTED, name="mail_customer", position=2)
    case = factories.case(asked)
    factories.audited(workflow, "start", "step charge_card", before="prepared", after="started", reason="claimed")
    page = auditor.get(f"/workflows/{workflow.pk}/").text
    for shown in (
        "Refund order 1007", "Never refund more", "words</figcaption>", "needs review", "1 of 3 steps verified",
        "side by side", "open_ticket", "op_5512", "captured", "worker-", f'href="/cases/{case.pk}/"', "refund/3",
        "next: a person answers the open question", "whether attempt 1 took effect",
        "card.charge@1", "prepared → started", "claimed", str(workflow.pk),
    ):  # fmt: skip
        assert shown in page, shown


def test_downloads_are_whole_exact_and_never_rendered(auditor: Client) -> None:
    case = factories.case(factories.step(factories.workflow(input='{"a":"<b>"}'), StepStatus.COMMITTED))
    step = case.step
    assert step.receipt is not None
    for address, text in [
        (f"/workflows/{case.workflow_id}/input.txt", '{"a":"<b>"}'),
        (f"/steps/{step.pk}/arguments.txt", step.arguments),
        (f"/evidence/{step.receipt.pk}/facts.txt", step.receipt.facts),
    ]:
        answered = auditor.get(address)
        assert answered.text == text
        assert answered["Content-Type"] == "text/plain; charset=utf-8"
        assert answered["Content-Disposition"].startswith("attachment")
        assert answered["X-Content-Type-Options"] == "nosniff"


def test_an_error_of_ours_gives_a_page_and_a_fragment_with_a_way_on(
    auditor: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object, **__: object) -> None:
        raise RuntimeError("broken on purpose")

    monkeypatch.setattr("approvals.inbox.review_queue.queue", broken)
    auditor.raise_request_exception = False
    page, fragment = auditor.get("/review/"), auditor.get("/review/", headers=HTMX)
    assert (page.status_code, fragment.status_code) == (500, 500)
    assert "Something broke on our side" in page.text
    assert fragment["HX-Retarget"] == "#notice"
    assert "broken on purpose" not in page.text + fragment.text


def test_pages_allow_no_foreign_or_inline_script(auditor: Client) -> None:
    case = factories.case()
    for address in ("/review/", "/workflows/", f"/workflows/{case.workflow_id}/", f"/cases/{case.pk}/"):
        answered = auditor.get(address)
        assert "script-src 'self'" in answered["Content-Security-Policy"]
        assert "unsafe" not in answered["Content-Security-Policy"]
        for inline in ("<style", " style=", " onclick", " hx-on", "javascript:"):
            assert inline not in answered.text


def test_a_form_that_is_too_large_is_refused_with_its_limit() -> None:
    case = factories.case()
    client = signed_in(factories.person("ada", groups=["Approver"], teams=[case.workflow.team]))
    client.handler.enforce_csrf_checks = False
    refused = client.post(f"/cases/{case.pk}/decision/", {"kind": "confirm", "reason": "x" * 3_000_000})
    assert refused.status_code == 413
    assert "takes at most 2621440 bytes" in refused.text
