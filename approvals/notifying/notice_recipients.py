"""Who is told, as SQL: sets of people and channels for each case, approval or workflow. `notices.py` writes with it.

Each query names the event's row `event` and its workflow's row `workflow`.
"""

from __future__ import annotations

# A permission counts as `User.has_perm` counts it: the account's own, a group's, or a superuser's.
_HOLDS = """(person.is_superuser OR EXISTS (
  SELECT FROM auth_permission AS permission JOIN django_content_type AS type ON type.id = permission.content_type_id
  WHERE type.app_label || '.' || permission.codename = {permission} AND (
    EXISTS (SELECT FROM auth_user_user_permissions AS own
            WHERE own.user_id = person.id AND own.permission_id = permission.id)
    OR EXISTS (SELECT FROM auth_user_groups AS membership
               JOIN auth_group_permissions AS given ON given.group_id = membership.group_id
               WHERE membership.user_id = person.id AND given.permission_id = permission.id))))"""
_IN_TEAM = """EXISTS (SELECT FROM checkpoint_team_members AS membership
  WHERE membership.user_id = person.id AND membership.team_id = workflow.team_id)"""

DECIDERS = f"""SELECT person.id FROM auth_user AS person
  WHERE person.is_active AND {_IN_TEAM} AND {_HOLDS.format(permission="%(right)s")}"""

# Those whose answer counts beside the ones that were given; the sender asks for the right again.
COSIGNERS = f"""{DECIDERS}
    AND (%(groups)s::text[] = '{{}}' OR EXISTS (
      SELECT FROM auth_user_groups AS membership JOIN auth_group AS named ON named.id = membership.group_id
      WHERE membership.user_id = person.id AND named.name = ANY(%(groups)s)))
    AND NOT EXISTS (SELECT FROM approvals_signature AS given
                    WHERE given.case_id = event.id AND given.person_id = person.id)"""

ASSIGNEE = "SELECT person.id FROM auth_user AS person WHERE person.is_active AND person.id = %(to)s"

# The same as `requests.refusal_of` says of each person; the sender asks that again.
APPROVERS = f"""{DECIDERS}
    AND (event.rule->'groups' = '[]' OR EXISTS (
      SELECT FROM auth_user_groups AS membership JOIN auth_group AS named ON named.id = membership.group_id
      WHERE membership.user_id = person.id AND event.rule->'groups' ? named.name))
    AND ((event.rule->>'self_approval')::boolean OR person.id IS DISTINCT FROM workflow.submitted_by_id)
    AND NOT EXISTS (SELECT FROM approvals_decision AS given
                    WHERE given.approval_id = event.id AND given.person_id = person.id)"""

ON_CALL = f"""SELECT person.id FROM auth_user AS person
  WHERE person.is_active AND {_HOLDS.format(permission="%(right)s")}
    AND ({_IN_TEAM} OR {_HOLDS.format(permission="%(view_all)s")})"""

# Without an address nobody is told, and agents' accounts have none: a row for each of their workflows would be for
# nothing. Nobody is told of what they did themselves.
REQUESTER = """SELECT person.id FROM auth_user AS person
  WHERE person.id = workflow.submitted_by_id AND person.is_active AND person.email <> ''
    AND person.id IS DISTINCT FROM %(doer)s"""

CHANNELS = """SELECT channel.id FROM approvals_noticechannel AS channel
  WHERE channel.enabled AND %(kind)s = ANY(channel.kinds)
    AND (channel.team_id IS NULL OR channel.team_id = workflow.team_id)"""
