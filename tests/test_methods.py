"""A method that an address does not take gets a page that says so; HEAD works wherever GET does."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import User
from django.urls import URLPattern, URLResolver, get_resolver

from tests import bulk_driver, factories
from tests.case_driver import worker
from tests.console_driver import HTMX, signed_in

pytestmark = pytest.mark.usefixtures("database")


def test_a_wrong_method_gets_a_page_like_any_other_refusal() -> None:
    case = factories.case()
    client = signed_in(worker(case))
    client.handler.enforce_csrf_checks = False
    refused = client.post("/review/")
    assert (refused.status_code, refused["Allow"]) == (405, "GET, HEAD")
    assert "It takes GET, HEAD, not POST. Nothing was changed." in refused.text
    assert "Go to the review queue" in refused.text
    part = client.post("/review/", headers=HTMX)
    assert (part.status_code, part["HX-Retarget"], "<html" in part.text) == (405, "#notice", False)


def test_head_is_answered_as_get_is() -> None:
    admin = factories.person("adam", groups=["Admin", "Approver"], teams=[factories.team()])
    User.objects.filter(pk=admin.pk).update(is_superuser=True)
    case, client = factories.case(), signed_in(admin)
    known = {
        "workflow_id": case.workflow_id, "case_id": case.pk, "step_id": case.step_id, "account_id": admin.pk,
        "approval_id": bulk_driver.approval().pk, "number": 1,
    }  # fmt: skip
    tried = 0
    pages = [module for module in get_resolver().url_patterns if str(module.pattern) == ""]  # the API has its own
    for module in pages:
        assert isinstance(module, URLResolver)
        for pattern in module.url_patterns:
            assert isinstance(pattern, URLPattern)
            names = pattern.pattern.converters
            if not names.keys() <= known.keys() or pattern.name in _NOT_BY_HEAD:
                continue
            address = "/" + str(pattern.pattern)
            for name, converter in names.items():
                address = address.replace(f"<{_KIND[type(converter).__name__]}:{name}>", str(known[name]))
            got, headed = client.get(address), client.head(address)
            assert (headed.status_code, headed.content) == (got.status_code, b""), address
            tried += 1
    assert tried > 30


_NOT_BY_HEAD = {
    "logout",  # it takes neither
    "audit_export",  # on purpose: every export is written to the audit, and a HEAD exports nothing
}
_KIND = {"UUIDConverter": "uuid", "IntConverter": "int"}
