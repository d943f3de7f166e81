"""Who sees which workflow, and what each group may do."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import AnonymousUser, User

from approvals.inbox.review_queue import queue
from approvals.permissions import DECIDE_CASE
from approvals.queries import visible_case
from checkpoint import permissions, queries
from checkpoint.errors import Forbidden, NotFound
from tests import factories

pytestmark = pytest.mark.usefixtures("database")

RIGHTS = [permissions.VIEW_ALL_WORKFLOWS, permissions.SUBMIT_WORKFLOW, permissions.ADMINISTER_WORKFLOW, DECIDE_CASE]
GROUPS = {
    "Operator": {permissions.SUBMIT_WORKFLOW, permissions.ADMINISTER_WORKFLOW, DECIDE_CASE},
    "Approver": {DECIDE_CASE},
    "Auditor": {permissions.VIEW_ALL_WORKFLOWS},
    "Admin": {permissions.VIEW_ALL_WORKFLOWS, permissions.ADMINISTER_WORKFLOW},
    "Agent": {permissions.SUBMIT_WORKFLOW},
}


@pytest.mark.parametrize("group", GROUPS)
def test_each_group_holds_its_rights_and_no_others(group: str) -> None:
    person = factories.person("ada", groups=[group])
    assert {right for right in RIGHTS if person.has_perm(right)} == GROUPS[group]


def test_members_see_their_teams_workflows_only() -> None:
    ours, theirs = factories.workflow(), factories.workflow(team=factories.team("Legal"))
    member = factories.person("ada", teams=[ours.team])
    assert list(permissions.workflows_visible_to(member)) == [ours]
    with pytest.raises(NotFound):
        queries.visible_workflow(member, theirs.pk)


def test_who_may_view_all_sees_every_team() -> None:
    one, other = factories.workflow(), factories.workflow(team=factories.team("Legal"))
    auditor = factories.person("ada", groups=["Auditor"])
    assert set(permissions.workflows_visible_to(auditor)) == {one, other}


def test_inactive_and_anonymous_people_see_nothing() -> None:
    workflow = factories.workflow()
    person = factories.person("ada", groups=["Auditor"], teams=[workflow.team])
    User.objects.filter(pk=person.pk).update(is_active=False)
    for nobody in (User.objects.get(pk=person.pk), AnonymousUser()):
        assert not permissions.workflows_visible_to(nobody).exists()
        assert not permissions.teams_visible_to(nobody).exists()


def test_cases_hide_behind_their_workflow() -> None:
    case = factories.case()
    stranger = factories.person("eve", groups=["Approver"], teams=[factories.team("Legal")])
    assert not queue(stranger).rows
    with pytest.raises(NotFound):
        visible_case(stranger, case.pk)


def test_seeing_without_the_right_is_forbidden() -> None:
    with pytest.raises(Forbidden, match=r"checkpoint\.administer_workflow"):
        permissions.require(factories.person("ada"), permissions.ADMINISTER_WORKFLOW, action="wind a workflow down")
