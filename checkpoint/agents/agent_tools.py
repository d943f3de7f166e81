"""Registering the tools that the agents of a team carry out themselves."""

from __future__ import annotations

from collections.abc import Callable

from django.contrib.auth.models import User

from checkpoint import tool_versions
from checkpoint.agents.tool_documents import declaration_in
from checkpoint.errors import NotFound
from checkpoint.models import Team, ToolVersion
from checkpoint.people import Actor
from checkpoint.permissions import REGISTER_TOOL, require, teams_visible_to
from checkpoint.planning.documents import Document
from checkpoint.transactions import one_transaction


@one_transaction
def register(
    document: Document,
    *,
    team: Team,
    actor: Actor,
    user: User | None = None,
    alongside: Callable[[ToolVersion], None] = lambda tool: None,
) -> ToolVersion:
    """Puts a contract in force for the steps that the team's agents carry out; the same again changes nothing.

    An agent cannot do this for itself by its submit right: what a tool promises (that it only reads, say) decides
    what policies ask, and what is concluded after a crash.

    Args:
        user: the account in whose name it is done, and whose rights count; None for the machine's operator.
        alongside: writes what belongs to it, in its transaction; what it raises undoes both.

    Returns:
        The version in force.

    Raises:
        NotFound: the user does not see the team.
        Forbidden: the user may not register tools.
        SubmissionInvalid: every fault of the document.
    """
    if user is not None:
        user = User.objects.get(pk=user.pk)  # read again: a right that was taken away counts at once (S25)
        if not teams_visible_to(user).filter(pk=team.pk).exists():
            raise NotFound(f"There is no team {team.slug} that you may see.")
        require(user, REGISTER_TOOL, action="register tools")
    declared = declaration_in(document, team=team.slug)
    stored = tool_versions.store([declared], actor=actor, team=team)
    registered = stored[0] if stored else tool_versions.newest_versions().get(name=declared.name)
    alongside(registered)
    return registered
