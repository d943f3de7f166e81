"""Who looks after a case: claimed, released, given to somebody; over every channel (S11, S19, S31)."""

from __future__ import annotations

from functools import partial

import pytest
from django.contrib.auth.models import User

from approvals.casework import assignments
from approvals.models import Assignment
from checkpoint import audit
from checkpoint.errors import ActionIncomplete, AlreadyAssigned, CaseClosed, Forbidden, NotFound
from checkpoint.models import Case
from tests import factories
from tests.case_driver import at_once, entries, onlooker, raised, stranger, worker

pytestmark = pytest.mark.usefixtures("database")


def claim(case: Case, person: User) -> Assignment:
    return assignments.claim(case_id=case.pk, person=person, channel="command")


def assign(
    case: Case, person: User, to: str, *, seen: Assignment | None = None, reason: str = "knows it"
) -> Assignment:
    return assignments.assign(
        case_id=case.pk, to=to, person=person, channel="command", reason=reason, seen=seen.pk if seen else None
    )


def test_a_claimed_case_is_its_claimers_and_the_audit_says_so() -> None:
    case = factories.case()
    ada = worker(case)
    assert claim(case, ada) == claim(case, ada) == assignments.current(case)
    (entry,) = entries(case, "claim")
    assert (entry.actor, entry.channel) == ("ada", "command")
    assert list(audit.broken_links()) == []


def test_s19_of_two_people_who_claim_at_once_one_gets_it_and_the_other_is_told_who() -> None:
    case = factories.case()
    people = [worker(case, name) for name in ("ada", "grace", "joan", "kay")]
    outcomes = at_once(*[partial(claim, case, person) for person in people])
    (won,) = [outcome for outcome in outcomes if isinstance(outcome, Assignment)]
    assert len(raised(outcomes)) == 3
    for refusal in raised(outcomes):
        assert isinstance(refusal, AlreadyAssigned)
        assert f"{won.person_name} has this case since" in str(refusal)
    assert Assignment.objects.get() == won
    assert len(entries(case, "claim")) == 1


def test_a_released_case_is_anybodys_and_releasing_it_again_changes_nothing() -> None:
    case = factories.case()
    ada, grace = worker(case), worker(case, "grace")
    claim(case, ada)
    assert assignments.release(case_id=case.pk, person=ada, channel="command") is not None
    assert assignments.release(case_id=case.pk, person=ada, channel="command") is None
    assert len(entries(case, "release")) == 1
    assert claim(case, grace).person == grace


def test_only_who_has_a_case_releases_it() -> None:
    case = factories.case()
    claim(case, worker(case))
    with pytest.raises(Forbidden, match="Only ada can release it"):
        assignments.release(case_id=case.pk, person=worker(case, "grace"), channel="command")


def test_a_case_is_given_to_somebody_with_a_reason_whoever_had_it() -> None:
    case = factories.case()
    ada, grace = worker(case), worker(case, "grace", "Operator")
    held = claim(case, ada)
    given = assign(case, ada, "grace", seen=held)
    assert (given.person, given.assigned_by_name, given.is_claim) == (grace, "ada", False)
    held.refresh_from_db()
    assert held.ended_at is not None
    (entry,) = entries(case, "assign")
    assert '"reason":"knows it"' in entry.text
    assert assign(case, ada, "grace", seen=held) == given, "the same press again"


def test_s11_who_assigns_by_what_was_so_a_moment_ago_is_told_who_has_it_now() -> None:
    case = factories.case()
    ada, grace = worker(case), worker(case, "grace")
    claim(case, grace)
    worker(case, "joan")
    with pytest.raises(AlreadyAssigned, match="grace has this case"):
        assign(case, ada, "joan", seen=None)
    assert assignments.current(case).person == grace  # type: ignore[union-attr]


@pytest.mark.parametrize("who", ["an onlooker", "a stranger", "disabled", "nobody"])
def test_a_case_goes_only_to_somebody_of_the_team_who_may_decide(who: str) -> None:
    case = factories.case()
    ada = worker(case)
    name = {"an onlooker": lambda: onlooker(case).username, "a stranger": lambda: stranger().username}.get(
        who, lambda: "zoe"
    )()
    if who == "disabled":
        User.objects.filter(pk=worker(case, "zoe").pk).update(is_active=False)
    with pytest.raises(ActionIncomplete, match=r"^to: choose somebody of the team"):
        assign(case, ada, name)
    assert not Assignment.objects.exists()


@pytest.mark.parametrize("reason", ["", "  ", "x" * 4001, "a\0b"])
def test_giving_a_case_away_takes_a_reason(reason: str) -> None:
    case = factories.case()
    with pytest.raises(ActionIncomplete, match=r"^reason: "):
        assign(case, worker(case), "ada", reason=reason)


def test_who_may_not_decide_may_not_look_after_a_case_either() -> None:
    case = factories.case()
    for person, refusal in ((onlooker(case), Forbidden), (stranger(), NotFound)):
        with pytest.raises(refusal):
            claim(case, person)
        with pytest.raises(refusal):
            assign(case, person, "otto")
        with pytest.raises(refusal):
            assignments.release(case_id=case.pk, person=person, channel="command")


def test_a_closed_case_is_nobodys() -> None:
    case = factories.case()
    ada = worker(case)
    claim(case, ada)
    Case.objects.filter(pk=case.pk).update(status="settled", closing="a late receipt", closed_at=case.opened_at)
    assert assignments.current(Case.objects.get()) is None
    with pytest.raises(CaseClosed, match="a late receipt"):
        claim(case, ada)
