"""Files on the case page: bounded, handed out as attachments that no browser runs, held against their hash."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile

from approvals.models import Attachment
from tests import factories
from tests.case_driver import form, onlooker, press, stranger, worker
from tests.console_driver import signed_in

pytestmark = pytest.mark.usefixtures("database")


@pytest.fixture(autouse=True)
def storage(settings: Any, tmp_path: Path) -> Path:
    """Where the bytes are."""
    settings.MEDIA_ROOT = tmp_path
    return tmp_path


def statement(content: bytes = b"paid") -> SimpleUploadedFile:
    return SimpleUploadedFile("statement.txt", content, content_type="text/plain")


def test_a_file_that_is_too_large_is_refused_with_the_limit(settings: Any) -> None:
    settings.CHECKPOINT_LARGEST_ATTACHMENT = 1000
    case = factories.case()
    refused = press(worker(case), case, "files", file=statement(b"x" * 1001), reason="It is large.")
    assert (refused.status_code, "At most 1,000 bytes" in refused.text) == (422, True)
    assert form(refused, "files")["fields"]["reason"] == "It is large."


def test_a_file_is_handed_out_as_an_attachment_that_no_browser_runs() -> None:
    case = factories.case()
    client = signed_in(worker(case))
    html = SimpleUploadedFile('e"vil\u202e.html', b"<script>alert(1)</script>", content_type="text/html")
    press(client, case, "files", file=html, reason="A page.")
    address = f"/files/{Attachment.objects.get().pk}/"
    answered = client.get(address)
    assert answered.getvalue() == b"<script>alert(1)</script>"
    assert answered["Content-Type"] == "application/octet-stream"
    assert answered["Content-Disposition"].startswith("attachment;")
    assert "%E2%80%AE" not in answered["Content-Disposition"]
    assert answered["X-Content-Type-Options"] == "nosniff"
    assert signed_in(stranger()).get(address).status_code == 404
    assert signed_in(onlooker(case)).get(address).status_code == 200


def test_a_file_whose_bytes_were_changed_is_not_handed_out(storage: Path) -> None:
    case = factories.case()
    client = signed_in(worker(case))
    press(client, case, "files", file=statement(), reason="Monday's statement.")
    (kept,) = [path for path in storage.rglob("*") if path.is_file()]
    kept.write_bytes(b"PAID")
    answered = client.get(f"/files/{Attachment.objects.get().pk}/")
    assert answered.status_code == 500
    assert "do not match their SHA-256" in answered.text
