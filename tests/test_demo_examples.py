"""The examples as `make up` leaves them for whoever follows the README, also with another port of the sandbox."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command

from checkpoint.config.environment import BASE_DIR
from checkpoint.config.sandbox_address import adapted
from tests import factories

pytestmark = pytest.mark.usefixtures("database")


def test_with_another_port_the_copies_name_it(tmp_path: Path, settings: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    factories.workflow()  # not the first visit: nothing is submitted, the copies are kept all the same
    settings.CHECKPOINT_HOME = tmp_path
    monkeypatch.setenv("CHECKPOINT_SANDBOX_PORT", "7999")
    call_command("submit_demo_workflows")
    text = (tmp_path / "examples" / "invoicing.yaml").read_text(encoding="utf-8")
    assert "http://127.0.0.1:7999/" in text
    assert ":7180" not in text


def test_the_list_of_mail_accounts_names_the_present_ports(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CHECKPOINT_SANDBOX_MAIL_PORT", "7998")
    copy = adapted(BASE_DIR / "deploy" / "mail-accounts.toml", tmp_path)
    assert copy.parent == tmp_path
    assert "port = 7998\n" in copy.read_text(encoding="utf-8")
    assert "7125" not in copy.read_text(encoding="utf-8")


def test_with_the_usual_port_the_files_are_used_as_they_are(
    tmp_path: Path, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    factories.workflow()
    settings.CHECKPOINT_HOME = tmp_path
    monkeypatch.delenv("CHECKPOINT_SANDBOX_PORT", raising=False)
    call_command("submit_demo_workflows")
    assert list((tmp_path / "examples").iterdir()) == []
