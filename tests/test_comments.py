"""What people tell each other about a case: kept as it was said, bounded, shown harmlessly."""

from __future__ import annotations

from functools import partial

import pytest
from django.contrib.auth.models import User

from approvals.casework import comments
from approvals.models import Comment
from checkpoint.errors import ActionIncomplete, Forbidden, NotFound, TooMany
from checkpoint.models import Case
from tests import factories
from tests.case_driver import at_once, entries, onlooker, raised, stranger, worker

pytestmark = pytest.mark.usefixtures("database")


def comment(case: Case, person: User, text: str = "The bank answers on Monday.") -> Comment:
    return comments.comment(case_id=case.pk, person=person, channel="command", text=text)


def test_a_comment_is_kept_with_who_when_and_by_which_way() -> None:
    case = factories.case()
    made = comment(case, worker(case), "  The bank\nanswers on Monday. ")
    assert (made.text, made.person_name, made.channel) == ("The bank\nanswers on Monday.", "ada", "command")
    assert len(entries(case, "comment")) == 1


def test_the_same_words_again_are_one_comment_until_somebody_says_something_else() -> None:
    case = factories.case()
    ada, grace = worker(case), worker(case, "grace")
    assert comment(case, ada) == comment(case, ada)
    comment(case, grace)
    comment(case, ada)
    assert Comment.objects.count() == 3
    assert len(entries(case, "comment")) == 3


def test_people_who_comment_at_once_are_all_heard() -> None:
    case = factories.case()
    people = [worker(case, f"person{number}") for number in range(6)]
    assert raised(at_once(*[partial(comment, case, person) for person in people])) == []
    assert Comment.objects.count() == 6


@pytest.mark.parametrize("text", ["", " \n ", "x" * 4001, "a\0b"])
def test_a_comment_says_something_and_has_a_bound(text: str) -> None:
    case = factories.case()
    with pytest.raises(ActionIncomplete, match=r"^text: "):
        comment(case, worker(case), text)


def test_a_case_takes_so_many_comments(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(comments, "MOST_COMMENTS", 2)
    case = factories.case()
    ada = worker(case)
    for text in "ab":
        comment(case, ada, text)
    with pytest.raises(TooMany):
        comment(case, ada, "c")


def test_a_closed_case_can_still_be_commented_on() -> None:
    case = factories.case()
    Case.objects.filter(pk=case.pk).update(status="settled", closing="a late receipt", closed_at=case.opened_at)
    comment(case, worker(case), "The bank confirmed it too.")


def test_who_may_not_decide_may_not_comment() -> None:
    case = factories.case()
    with pytest.raises(Forbidden):
        comment(case, onlooker(case))
    with pytest.raises(NotFound):
        comment(case, stranger())
