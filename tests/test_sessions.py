"""Sessions of a disabled account are over, also when the account is enabled again (S25)."""

from __future__ import annotations

import pytest

from tests import factories
from tests.console_driver import signed_in

pytestmark = pytest.mark.usefixtures("database")


def test_s25_a_session_does_not_live_again_when_its_account_is_enabled() -> None:
    ada, bob = (factories.person(name, teams=[factories.team()]) for name in ("ada", "bob"))
    hers, his = signed_in(ada), signed_in(bob)
    assert hers.get("/review/").status_code == his.get("/review/").status_code == 200
    for active in (False, True):
        ada.is_active = active
        ada.save(update_fields=["is_active"])
    assert hers.get("/review/").status_code == 302
    assert his.get("/review/").status_code == 200
    assert signed_in(ada).get("/review/").status_code == 200
