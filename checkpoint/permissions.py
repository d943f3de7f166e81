"""What a person may see and do. Seeing, deciding and administering are different rights.

Seeing comes first: what one may not see does not exist for one (NotFound), and only what one sees can be refused
(Forbidden). `workflows_visible_to` is the only door to a workflow, for pages, API, commands and domain verbs alike.
"""

from __future__ import annotations

from django.contrib.auth.models import AnonymousUser, User
from django.db.models import QuerySet

from checkpoint.errors import Forbidden
from checkpoint.models import Team, Workflow

Person = User | AnonymousUser

VIEW_ALL_WORKFLOWS = "checkpoint.view_all_workflows"
SUBMIT_WORKFLOW = "checkpoint.submit_workflow"
ADMINISTER_WORKFLOW = "checkpoint.administer_workflow"
REGISTER_TOOL = "checkpoint.register_tool"
VIEW_AUDIT = "checkpoint.view_audit"
ADMINISTER_PEOPLE = "checkpoint.administer_people"


def workflows_visible_to(person: Person) -> QuerySet[Workflow]:
    """The workflows of the person's teams, or of all teams with VIEW_ALL_WORKFLOWS; none for an inactive person."""
    if not person.is_active:
        return Workflow.objects.none()
    if person.has_perm(VIEW_ALL_WORKFLOWS):
        return Workflow.objects.all()
    return Workflow.objects.filter(team__in=teams_of(person))


def teams_visible_to(person: Person) -> QuerySet[Team]:
    """The teams whose workflows the person sees, by name."""
    everyones = person.is_active and person.has_perm(VIEW_ALL_WORKFLOWS)
    return (Team.objects.all() if everyones else teams_of(person)).order_by("name")


def teams_of(person: Person) -> QuerySet[Team]:
    """The teams that an active person belongs to."""
    return Team.objects.filter(members=person.pk) if person.is_active else Team.objects.none()


def require(person: Person, permission: str, *, action: str) -> None:
    """Raises Forbidden unless the person holds the permission. `action` completes "you may not …"."""
    if not person.has_perm(permission):
        raise Forbidden(f"You may see this, but you may not {action}. Ask an administrator for “{permission}”.")


def admit(person: Person | None, permission: str, *, action: str) -> None:
    """As `require`, where there is nothing to see without the permission either.

    None is whoever runs a command on this machine without naming an account: the machine is theirs.
    """
    if person is not None and not person.has_perm(permission):
        raise Forbidden(f"You may not {action}. Ask an administrator for “{permission}”.")
