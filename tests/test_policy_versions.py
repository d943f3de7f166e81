"""Policy versions: stored whole, put in force once, and shown with what they change before that."""

from __future__ import annotations

import hashlib
import threading
from typing import Any

import pytest
from django.contrib.auth.models import Group, User
from django.db import IntegrityError, ProgrammingError, connections

from approvals.policies import PolicyDocument, rule
from approvals.rules import policy_previews, policy_versions
from approvals.rules.policy_checks import warnings
from approvals.rules.policy_documents import read_policy
from approvals.rules.policy_errors import ActivationIncomplete, PolicyInvalid, PolicyUnchanged
from approvals.rules.policy_previews import preview, trial
from approvals.rules.policy_summaries import Row, side_by_side, tool_changes
from approvals.rules.policy_versions import activate, document_of, in_force, text_of
from checkpoint.canonical import canonical, sha256_hex
from checkpoint.errors import Conflict, Forbidden, NotFound, StaleView
from checkpoint.models import Approval, PolicyVersion, Workflow
from checkpoint.people import Actor
from checkpoint.permissions import workflows_visible_to
from checkpoint.tool_versions import newest_tools
from checkpoint.turns import pinned
from tests import factories, journal_driver, submissions
from tests.audit_driver import system_entries
from tests.policies_driver import CAREFUL, document

pytestmark = pytest.mark.usefixtures("database")

ONE_TRY = "defaults:\n  max_attempts: 1\nrules: []\n"


def put(text: str = ONE_TRY, *, user: User | None = None, **changes: Any) -> PolicyVersion:
    """Puts a policy in force, compared with the one that is."""
    name = user.get_username() if user else "root"
    given: dict[str, Any] = {"reason": "One try is enough.", "seen": in_force().number, **changes}
    return activate(text=text, actor=Actor(name, "command"), user=user, **given)


# Storing


def test_a_version_keeps_text_hash_rules_reason_and_author() -> None:
    stored = put(user=factories.person("ada", groups=["Admin"]))
    stored.refresh_from_db()
    assert (stored.number, stored.text, stored.reason, stored.author) == (2, ONE_TRY, "One try is enough.", "ada")
    assert stored.sha256 == hashlib.sha256(ONE_TRY.encode()).hexdigest()
    assert stored.rules == {"defaults": {"max_attempts": 1}, "rules": []}
    assert in_force() == stored


def test_it_is_in_the_audit_with_who_and_why() -> None:
    stored = put()
    (entry,) = system_entries("activate")
    assert (entry["actor"], entry["channel"], entry["reason"]) == ("root", "command", "One try is enough.")
    assert (entry["before"], entry["after"]) == ("policy 1", "policy 2")
    assert entry["details"]["sha256"] == stored.sha256


def test_new_workflows_are_planned_under_it_and_older_ones_stay_pinned() -> None:
    older = submissions.submitted(submissions.invoice())
    stored = put()
    newer = submissions.submitted(submissions.invoice())
    assert (older.policy_version.number, newer.policy_version) == (1, stored)
    assert pinned.policy(older.policy_version_id).max_attempts == 3
    assert (pinned.policy(stored.pk).max_attempts, pinned.policy(stored.pk).retry_cap) == (1, 60)
    assert newer.steps.get().attempts_allowed == 1


def test_the_first_version_has_no_text_and_still_rules_and_reads_as_one() -> None:
    first = in_force()
    assert first.text == ""
    assert first.sha256 == sha256_hex(canonical(first.rules))
    assert read_policy(text_of(first))[0].budgets == document_of(first.pk).budgets
    assert document_of(first.pk).rules == ()


def test_a_version_never_changes() -> None:
    stored = put()
    with pytest.raises((IntegrityError, ProgrammingError)):
        PolicyVersion.objects.filter(pk=stored.pk).update(text="rules: []")


def test_versions_are_found_by_number() -> None:
    assert policy_versions.version(1).number == 1
    for number in (0, 2, -1, 2**40):
        with pytest.raises(NotFound, match="There is no policy version"):
            policy_versions.version(number)


# Refusing


@pytest.mark.parametrize("text", [ONE_TRY, ONE_TRY.replace("\n", "\r\n"), "\ufeff" + ONE_TRY])
def test_what_is_in_force_already_is_refused(text: str) -> None:
    put()
    with pytest.raises(PolicyUnchanged, match="active already, as version 2"):
        put(text)
    with pytest.raises(PolicyUnchanged):
        put(text_of(in_force()))
    assert PolicyVersion.objects.count() == 2


def test_the_first_version_as_it_is_shown_is_in_force_already() -> None:
    with pytest.raises(PolicyUnchanged):
        put(text_of(in_force()))


def test_a_policy_compared_with_an_older_version_is_refused() -> None:
    put()
    with pytest.raises(StaleView, match="root put version 2 in force since you looked: One try is enough"):
        put("rules: []", seen=1)
    assert in_force().number == 2


def test_of_two_who_activate_at_once_one_wins() -> None:
    put()
    start = threading.Barrier(6)
    outcomes: list[object] = []

    def run(index: int) -> None:
        try:
            start.wait()
            outcomes.append(put(f"defaults: {{max_attempts: {index + 2}}}", seen=2).number)
        except Conflict as lost:
            outcomes.append(type(lost).__name__)
        finally:
            connections.close_all()

    people = [threading.Thread(target=run, args=[index]) for index in range(6)]
    for person in people:
        person.start()
    for person in people:
        person.join()
    assert sorted(map(str, outcomes)) == ["3", *["StaleView"] * 5]
    assert len(system_entries("activate")) == 2


@pytest.mark.parametrize("group", ["Operator", "Approver", "Auditor", "Agent"])
def test_only_administrators_may_and_a_refusal_is_recorded(group: str) -> None:
    with pytest.raises(Forbidden, match="you may not put policies in force"):
        put(user=factories.person("eve", groups=[group]))
    assert PolicyVersion.objects.count() == 1
    (denial,) = system_entries("deny")
    assert (denial["actor"], denial["subject"], denial["details"]["wanted"]) == ("eve", "policy", "activate")


@pytest.mark.parametrize("change", ["disabled", "left the group"])
def test_a_lost_right_counts_at_once(change: str) -> None:
    admin = factories.person("ada", groups=["Admin"])
    assert admin.has_perm("approvals.administer_policy")
    if change == "disabled":
        User.objects.filter(pk=admin.pk).update(is_active=False)
    else:
        admin.groups.clear()
    with pytest.raises(Forbidden):
        put(user=admin)


@pytest.mark.parametrize("reason", ["", "  \n", "x" * 4001, "a\0b"])
def test_a_reason_is_needed(reason: str) -> None:
    with pytest.raises(ActivationIncomplete, match="reason"):
        put(reason=reason)
    assert PolicyVersion.objects.count() == 1


def test_faults_store_nothing_and_a_group_that_does_not_exist_is_one() -> None:
    text = """
rules:
- name: a
  set:
    approval: {groups: [Aprover, Admin], on_timeout: escalate, escalate_to: [Nobody]}
    decisions: {outcome_unknown: {retry: {groups: [Approver]}}}
"""
    with pytest.raises(PolicyInvalid) as caught:
        put(text)
    first, second = map(str, caught.value.faults)
    assert first == ('/rules/0/set/approval/groups/0: there is no group of this name; did you mean "Approver"?')
    assert second.startswith("/rules/0/set/approval/escalate_to/0: there is no group of this name; known: Admin, Agent")
    assert PolicyVersion.objects.count() == 1


def test_what_is_probably_not_meant_is_a_warning() -> None:
    submissions.published()
    factories.person("ann", groups=["Approver"])
    found = warnings(
        document(
            {"name": "a", "when": {"tool": ["mail.*", "invoice.creat"], "team": "nobody"}, "set": {"step_up": True}},
            {"name": "b", "set": {"approval": {"needed": 2}}},
            {"name": "c", "set": {"approval": {"needed": 1, "groups": ["Approver", "Admin"]}}},
        )
    )
    assert found == [
        '“a”: no tool is called invoice.creat; did you mean "invoice.create"?',
        "“a”: no team is called nobody",
        "“b”: needs 2 of Approver, which has 1 active members",
    ]


def test_the_example_can_be_put_in_force() -> None:
    stored = put(CAREFUL)
    assert len(document_of(stored.pk).rules) == 3


# What would change


def everything() -> Any:
    return Workflow.objects.all()


def test_open_work_that_is_ruled_differently_is_counted_by_what_changes() -> None:
    for _ in range(7):
        submissions.submitted(submissions.mail("one"), submissions.mail("two"), submissions.invoice())
    found = preview(PolicyDocument(), read_policy(CAREFUL)[0], everything())
    (mails, invoices) = found.changes
    assert (mails.tool, mails.steps, len(mails.workflows), len(mails.shown)) == ("mail.send", 14, 7, 5)
    assert mails.differences[0].startswith("approval: no approval → 1 of Approver for the step, within 1 day")
    assert (invoices.tool, invoices.differences) == ("invoice.create", ("budgets.verification_deadline: 60 → 120",))
    assert (found.looked_at, found.steps, found.workflows, found.complete) == (21, 21, 7, True)


def test_what_has_ended_or_is_not_visible_is_left_out() -> None:
    ended = factories.workflow()
    factories.step(ended)
    factories.step(factories.workflow(team=factories.team("Legal")))
    Workflow.objects.filter(pk=ended.pk).update(status="needs_review")
    approving = document({"set": {"approval": {"needed": 1}}})
    member = factories.person("ada", teams=[ended.team])
    assert preview(PolicyDocument(), approving, workflows_visible_to(member)).workflows == 1
    ended.steps.update(status="abandoned")
    assert preview(PolicyDocument(), approving, workflows_visible_to(member)).looked_at == 0
    assert preview(PolicyDocument(), approving, everything()).workflows == 1


def test_conditions_look_at_the_arguments_of_open_steps() -> None:
    submissions.submitted(submissions.mail("ours", "a@ours.example"), submissions.mail("theirs", "a@theirs.example"))
    outside = {"when": {"if": "!arguments.to.endsWith('@ours.example')"}, "set": {"approval": {"needed": 1}}}
    found = preview(PolicyDocument(), document(outside), everything())
    assert (found.looked_at, found.steps) == (2, 1)


def test_a_preview_is_bounded_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(policy_previews, "MOST_STEPS", 3)
    submissions.submitted(*(submissions.invoice(f"step_{index}") for index in range(5)))
    found = preview(PolicyDocument(), document({"set": {"step_up": True}}), everything())
    assert (found.looked_at, found.steps, found.complete) == (3, 3, False)


def test_a_trial_says_for_each_step_what_would_happen_and_why() -> None:
    workflow = submissions.submitted(
        submissions.invoice(),
        submissions.mail(to={"$result": "invoice#/operation_id"}),
    )
    policy = document(
        {
            "name": "outside",
            "when": {"tool": "mail.*", "if": "arguments.to != ''"},
            "set": {"approval": {"scope": "plan"}},
        }
    )
    found = trial(policy, workflow)
    invoice, mail = found.steps
    assert (invoice.name, invoice.ruling.approval) == ("invoice", None)
    assert mail.ruling.reasons[0].endswith("since its condition has no answer: the arguments are not there yet")
    assert (found.approval, mail.description.reversibility) == (mail.ruling.approval, "irreversible")
    assert mail.ruling == rule(policy, mail.description)


def test_a_summary_names_the_tools_for_which_something_changes() -> None:
    submissions.published()
    before = document({"name": "mails", "when": {"tool": "mail.*"}, "set": {"step_up": True}})
    after = document(
        {
            "name": "undone",
            "when": {"reversibility": "irreversible", "team": "ops"},
            "set": {"approval": {"needed": 1}},
        },
        {"name": "mails", "when": {"tool": "mail.*"}, "set": {"step_up": True}},
    )
    (change,) = tool_changes(before, after, newest_tools().values())
    assert change.tools == ("mail.send (irreversible)",)
    assert (change.removed, change.added) == ((), ("“undone” sets approval (needed 1) [team ops]",))
    assert tool_changes(before, before, newest_tools().values()) == []
    (default,) = tool_changes(before, document(max_attempts=1), [])
    assert default.tools == ("every tool",)
    assert (default.removed, default.added) == (("defaults: max_attempts 3",), ("defaults: max_attempts 1",))


def test_tools_with_the_same_change_stand_together_and_an_order_that_changes_is_a_change() -> None:
    submissions.published()
    first, second = ({"name": name, "set": {"limits": {"in_flight": 1}}} for name in "ab")
    (change,) = tool_changes(document(first, second), document(second, first), newest_tools().values())
    assert len(change.tools) == 3
    assert (change.removed, change.added) == ((), ())


def test_two_texts_side_by_side() -> None:
    old = "\n".join(f"line {number}" for number in range(1, 31))
    new = old.replace("line 2\n", "line two\n").replace("line 20\n", "").replace("line 30", "line 30\nline 31")
    rows = side_by_side(old, new)
    assert Row("changed", 2, "line 2", 2, "line two") in rows
    assert Row("removed", 20, "line 20", 0, "") in rows
    assert Row("added", 0, "", 30, "line 31") in rows
    assert [row.kind for row in rows].count("gap") == 2
    assert side_by_side(old, old) == []


def test_groups_are_looked_up_each_time() -> None:
    text = 'rules: [{name: a, set: {approval: {groups: ["Treasury"]}}}]'
    with pytest.raises(PolicyInvalid):
        put(text)
    Group.objects.create(name="Treasury")
    assert put(text).number == 2


def test_what_is_put_in_force_gates_the_next_start() -> None:
    workflow, worker = journal_driver.submit(journal_driver.OPAQUE), journal_driver.JournalDriver()
    put(CAREFUL)
    assert worker.turn() == []
    asked = Approval.objects.get(workflow=workflow)
    assert (asked.rule["needed"], asked.rule["groups"], asked.policy_version) == (1, ["Approver"], in_force())
    put("rules: []")
    Workflow.objects.filter(pk=workflow.pk).update(wake_at=asked.requested_at)
    workflow.steps.update(next_at=None)
    assert len(worker.turn()) == 1
