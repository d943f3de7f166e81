"""The pages of notices: who may look, what they show, sending again, one's own settings, channels."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import Permission, User
from django.test import Client

from approvals.models import Notice, NoticeChannel, NoticeSettings
from approvals.notifying.notice_rules import NoticeState
from checkpoint import clock
from checkpoint.models import AuditEntry
from tests import factories
from tests.console_driver import Forms, signed_in
from tests.notice_driver import approver, asked, channel, person
from tests.notice_receivers import Receiver

pytestmark = pytest.mark.usefixtures("database")


@pytest.fixture
def boss() -> User:
    return person("boss", groups=("Admin",))


def failed(detail: str = "550 no such user") -> Notice:
    """A notice to ada that nobody could deliver."""
    approver("ada")
    asked()
    Notice.objects.update(state=NoticeState.FAILED, settled_at=clock.now(), detail=detail, attempt_count=1)
    return Notice.objects.get()


def press(client: Client, address: str, page: str, /, **fields: Any) -> Any:
    """Fills in and sends the form of a page that leads to the address."""
    form = next(form for form in Forms(client.get(page).text).forms if form["action"] in (address, ""))
    token = form["fields"]["csrfmiddlewaretoken"]
    return client.post(address, {"csrfmiddlewaretoken": token, **fields})


class TestTheList:
    @pytest.mark.parametrize("group", ["Operator", "Approver", "Auditor", "Agent"])
    def test_is_for_those_who_look_after_notices(self, group: str) -> None:
        notice = failed()
        client = signed_in(person("other", groups=(group,)))
        for page in ("/notices/", f"/notices/{notice.pk}/", "/notices/channels/"):
            answer = client.get(page)
            assert answer.status_code == 403
            assert "approvals.administer_notices" in answer.text
        assert "Notices</a>" not in client.get("/review/").text

    def test_shows_state_recipient_and_last_error(self, boss: User) -> None:
        notice = failed("550 <b>no</b> such \u202e user")
        page = signed_in(boss).get("/notices/").text
        for shown in ("failed", "ada", f"/cases/{notice.case_id}/", "550 &lt;b&gt;no&lt;/b&gt; such"):
            assert shown in page
        assert "\u202e" not in page
        assert str(notice.pk) not in signed_in(boss).get("/notices/?state=delivered").text

    def test_holds_nothing_of_other_teams(self) -> None:
        notice = failed()
        stranger = person("stranger", team=factories.team("Legal"))
        stranger.user_permissions.add(Permission.objects.get(codename="administer_notices"))
        client = signed_in(stranger)
        assert str(notice.pk) not in client.get("/notices/").text
        assert client.get(f"/notices/{notice.pk}/").status_code == 404

    def test_names_what_is_left_of_an_erased_account(self, boss: User) -> None:
        notice = failed()
        User.objects.get(username="ada").delete()
        assert "erased account" in signed_in(boss).get(f"/notices/{notice.pk}/").text


class TestSendingAgain:
    def test_makes_the_notice_due_and_is_audited(self, boss: User) -> None:
        notice = failed()
        client = signed_in(boss)
        answer = press(client, f"/notices/{notice.pk}/redelivery/", f"/notices/{notice.pk}/")
        assert (answer.status_code, answer.headers["Location"]) == (302, f"/notices/{notice.pk}/")
        notice.refresh_from_db()
        assert (notice.state, notice.detail) == ("waiting", "")
        assert notice.attempts_allowed > notice.attempt_count
        entry = AuditEntry.objects.get(stream_id=notice.workflow_id, verb="redeliver")
        assert (entry.actor, entry.channel) == ("boss", "console")

    def test_is_refused_while_it_is_being_sent(self, boss: User) -> None:
        notice = failed()
        Notice.objects.update(state=NoticeState.SENDING, settled_at=None, due_at=clock.now() + timedelta(minutes=1))
        answer = press(signed_in(boss), f"/notices/{notice.pk}/redelivery/", f"/notices/{notice.pk}/")
        assert answer.status_code == 409
        assert "being sent right now" in answer.text
        assert not AuditEntry.objects.filter(verb="redeliver").exists()

    def test_is_refused_to_others_and_the_refusal_is_audited(self) -> None:
        notice = failed()
        client = signed_in(person("oscar", groups=("Operator",)))
        token = str(client.get("/review/").context["csrf_token"])
        answer = client.post(f"/notices/{notice.pk}/redelivery/", {"csrfmiddlewaretoken": token})
        assert answer.status_code == 403
        assert Notice.objects.get().state == "failed"
        assert AuditEntry.objects.filter(verb="deny", actor="oscar").count() == 1

    def test_by_a_reload_of_the_address_changes_nothing(self, boss: User) -> None:
        notice = failed()
        assert signed_in(boss).get(f"/notices/{notice.pk}/redelivery/").status_code == 302
        assert Notice.objects.get().state == "failed"


class TestOnesOwnSettings:
    WISHES = {
        "address": "ada@work.example", "email": "1", "kinds": ["asked", "decided"], "quiet_from": "22:00",
        "quiet_until": "07:00", "time_zone": "Europe/Berlin",
    }  # fmt: skip

    def test_are_stored_and_shown_and_audited_without_the_address(self) -> None:
        ada = approver("ada")
        client = signed_in(ada)
        assert press(client, "/notices/settings/", "/notices/settings/", **self.WISHES).status_code == 302
        stored = NoticeSettings.objects.get(person=ada)
        assert (stored.email, sorted(stored.muted)) == (
            True,
            ["assigned", "escalation", "outcome", "reminder", "second_person"],
        )
        assert User.objects.get(pk=ada.pk).email == "ada@work.example"
        page = client.get("/notices/settings/?saved")
        assert Forms(page.text).forms[-1]["fields"]["quiet_from"] == "22:00"
        assert "ada@work.example" not in "".join(AuditEntry.objects.values_list("text", flat=True))
        assert AuditEntry.objects.filter(verb="set_notices", actor="ada").count() == 1

    @pytest.mark.parametrize(
        ("field", "typed", "said"),
        [
            ("address", "ada@", "is no e-mail address"),
            ("address", "ada@work.example\nBcc: eve@x.example", "is no e-mail address"),
            ("quiet_until", "", "fill in both or neither"),
            ("quiet_from", "late", "written like 22:00"),
            ("quiet_until", "22:00", "no length"),
            ("time_zone", "Berlin", "is no time zone"),
        ],
    )
    def test_that_make_no_sense_are_shown_again_with_what_is_wrong(self, field: str, typed: str, said: str) -> None:
        client = signed_in(approver("ada"))
        answer = press(client, "/notices/settings/", "/notices/settings/", **self.WISHES | {field: typed})
        assert answer.status_code == 422
        assert said in answer.text
        assert "Europe/Berlin" in answer.text or field == "time_zone"
        assert not NoticeSettings.objects.exists()


class TestChannels:
    CHANNEL = {
        "name": "billing chat", "team": "default", "format": "slack", "url": "https://hooks.example/T0/secret",
        "secret_name": "", "kinds": ["asked", "escalation"],
    }  # fmt: skip

    def test_are_added_and_switched_off_and_never_show_their_address(self, boss: User) -> None:
        client = signed_in(boss)
        assert press(client, "/notices/channels/", "/notices/channels/", **self.CHANNEL).status_code == 302
        made = NoticeChannel.objects.get()
        assert made.team is not None
        assert (made.team.slug, made.enabled, made.kinds) == ("default", True, ["asked", "escalation"])
        page = client.get("/notices/channels/").text
        assert "hooks.example" in page
        switch = f"/notices/channels/{made.pk}/switch/"
        assert press(client, switch, "/notices/channels/", enabled="0").status_code == 302
        assert not NoticeChannel.objects.get().enabled
        texts = "".join(AuditEntry.objects.values_list("text", flat=True))
        assert "secret" not in page.replace("secret_name", "").replace("the secret itself", "") + texts

    @pytest.mark.parametrize(
        ("field", "typed", "said"),
        [
            ("name", "", "must have 1 to 80 characters"),
            ("team", "nowhere", "no such team"),
            ("format", "fax", "must be one of slack, standard"),
            ("url", "http://hooks.example/", "must begin with https://"),
            ("url", "https://user:password@hooks.example/", "must not hold a user name"),
            ("url", "file:///etc/passwd", "no web address"),
            ("url", "https://[", "no web address"),
            ("secret_name", "TEAM_HOOK", "must be empty"),
            ("kinds", [], "must be at least one of"),
        ],
    )
    def test_that_cannot_work_are_refused_with_what_is_wrong(
        self, boss: User, field: str, typed: Any, said: str
    ) -> None:
        sent = self.CHANNEL | {field: typed}
        answer = press(signed_in(boss), "/notices/channels/", "/notices/channels/", **sent)
        assert answer.status_code == 422
        assert said in answer.text
        assert not NoticeChannel.objects.exists()

    def test_are_set_up_by_nobody_else(self, receiver: Receiver) -> None:
        made = channel(receiver)
        client = signed_in(person("oscar", groups=("Operator",)))
        token = {"csrfmiddlewaretoken": str(client.get("/review/").context["csrf_token"])}
        assert client.post("/notices/channels/", token | self.CHANNEL).status_code == 403
        assert client.post(f"/notices/channels/{made.pk}/switch/", token | {"enabled": "0"}).status_code == 403
        assert [(hook.name, hook.enabled) for hook in NoticeChannel.objects.all()] == [(made.name, True)]

    @pytest.mark.parametrize("field", ["name", "team"])
    def test_a_text_that_cannot_be_stored_is_shown_with_its_fault(self, boss: User, field: str) -> None:
        client = signed_in(boss)
        refused = press(client, "/notices/channels/", "/notices/channels/", **self.CHANNEL | {field: "a\0b"})
        assert refused.status_code == 422
        assert not NoticeChannel.objects.exists()
