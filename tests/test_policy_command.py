"""`manage.py policy`: what it prints, what it stores, how it ends."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
import yaml

from approvals.rules.policy_versions import in_force
from checkpoint.models import PolicyVersion
from checkpoint.short_ids import short
from tests import factories, submissions
from tests.policies_driver import CAREFUL
from tests.test_commands import Ended, run

pytestmark = pytest.mark.usefixtures("database")

BAD = "rules:\n- {name: a, set: {approval: {groups: [Nobody], needed: 0}}}\n- {name: a, when: {if: 'foo('}}\n"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """The careful example, as a file."""
    submissions.published()
    path = tmp_path / "careful.yaml"
    path.write_text(CAREFUL)
    return path


def policy(verb: str, *arguments: object) -> Ended:
    """Runs a verb of the command."""
    return run("policy", verb, *map(str, arguments))


def test_check_says_that_there_are_no_faults_and_what_is_probably_not_meant(file: Path) -> None:
    ended = policy("check", file)
    assert ended.code == 0
    assert ended.out.splitlines()[0] == "No faults; 3 rules."
    assert "Warning: “large amounts need two approvers”: no tool is called http.request" in ended.out
    assert not PolicyVersion.objects.filter(number=2).exists()


@pytest.mark.parametrize("verb", ["check", "diff", "activate", "try"])
def test_every_fault_is_a_line_of_its_own_and_nothing_happens(file: Path, verb: str) -> None:
    file.write_text(BAD)
    more = {"activate": ["--reason", "x", "--yes"], "try": ["--workflow", "00000000"]}.get(verb, [])
    ended = policy(verb, file, *more)
    assert (ended.code, ended.out) == (2, "")
    assert [line.split(": ")[0] for line in ended.err.splitlines()[:-1]] == [
        "/rules/0/set/approval/needed",
        "/rules/1/name",
        "/rules/1/set",
        "/rules/1/when/if",
    ]
    assert ended.err.splitlines()[-1] == "4 faults in the policy."
    assert in_force().number == 1


@pytest.mark.parametrize(
    ("content", "words"), [(None, "cannot be read: No such file"), (b"\xff", "is not UTF-8: byte 0")]
)
def test_a_file_that_cannot_be_read_is_one_line(tmp_path: Path, content: bytes | None, words: str) -> None:
    path = tmp_path / "policy.yaml"
    if content is not None:
        path.write_bytes(content)
    ended = policy("check", path)
    assert (ended.code, len(ended.err.splitlines())) == (2, 1)
    assert words in ended.err


def test_a_policy_comes_from_standard_input_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"rules: []")))
    assert policy("check", "-").out == "No faults; 0 rules.\n"


def test_diff_shows_both_texts_and_what_changes_for_each_tool(file: Path) -> None:
    ended = policy("diff", file)
    lines = ended.out.splitlines()
    assert ended.code == 0
    assert lines[:2] == ["--- version 1, in force", "+++ this policy"]
    assert "+  - name: large amounts need two approvers" in lines
    assert "every tool:" in lines
    assert "  no longer: defaults: verification_deadline 60" in lines
    irreversible = lines[lines.index("mail.send (irreversible):") :]
    assert any(line.startswith("  new: “what cannot be undone needs an approval” sets") for line in irreversible)
    assert not any("large amounts" in line for line in irreversible)


def test_diff_with_what_is_in_force_says_that_nothing_changes(file: Path) -> None:
    file.write_text(policy("show").out)
    assert policy("diff", file).out.splitlines()[-1] == "For no tool does anything change."


def test_activate_first_shows_the_open_work_that_changes(file: Path) -> None:
    workflow = submissions.submitted(submissions.mail())
    ended = policy("activate", file, "--reason", "Approvals.")
    assert (ended.code, ended.err) == (3, "Not activated. Add --yes to go on.\n")
    assert "Of 1 open steps, 1 in 1 workflows would be ruled differently." in ended.out
    assert f"  mail.send, 1 steps of …{short(workflow.pk)}:" in ended.out
    assert "    approval: no approval → 1 of Approver for the step, within 1 day" in ended.out
    assert in_force().number == 1


def test_activate_with_yes_puts_it_in_force(file: Path) -> None:
    ended = policy("activate", file, "--reason", "Approvals.", "--yes")
    stored = in_force()
    assert (ended.code, ended.out.splitlines()[-1]) == (0, "Version 2 is in force.")
    assert (stored.number, stored.text, stored.reason) == (2, CAREFUL, "Approvals.")
    again = policy("activate", file, "--reason", "Again.", "--yes")
    assert (again.code, again.out, again.err) == (0, "It is active already, as version 2; nothing was changed.\n", "")
    assert in_force().number == 2


@pytest.mark.parametrize(("group", "code"), [("Admin", 0), ("Operator", 1)])
def test_activate_as_a_person_needs_that_persons_right(file: Path, group: str, code: int) -> None:
    factories.person("ada", groups=[group])
    ended = policy("activate", file, "--reason", "Approvals.", "--yes", "--as", "ada")
    assert ended.code == code
    assert in_force().author == ("ada" if code == 0 else "Checkpoint")
    assert code == 0 or "you may not put policies in force" in ended.err


def test_activate_without_a_reason_is_refused(file: Path) -> None:
    ended = policy("activate", file, "--reason", " ", "--yes")
    assert (ended.code, in_force().number) == (1, 1)
    assert ended.err.startswith("reason: say in a sentence why")


def test_try_says_for_each_step_what_would_happen_and_why(file: Path) -> None:
    workflow = submissions.submitted(submissions.invoice(), submissions.mail())
    ended = policy("try", file, "--workflow", short(workflow.pk))
    lines = ended.out.splitlines()
    assert lines[:3] == [
        "1. invoice (invoice.create, compensable): no approval",
        "   no rule matches: the defaults hold",
        "2. mail (mail.send, irreversible): 1 of Approver for the step, within 1 day; without an answer it expires",
    ]
    assert lines[3].startswith("   “what cannot be undone needs an approval” sets approval (needed 1, groups Approver")
    assert lines[4].endswith("decisions.outcome_unknown (confirm by 1, retry by 2 of Approver, abandon by 1)")


def test_try_shows_only_what_the_person_may_see(file: Path) -> None:
    workflow = submissions.submitted(submissions.mail())
    factories.person("eve")
    ended = policy("try", file, "--workflow", workflow.pk, "--as", "eve")
    assert (ended.code, ended.out) == (1, "")
    assert "There is no workflow" in ended.err


def test_show_prints_a_text_that_can_be_put_in_force_again(file: Path) -> None:
    policy("activate", file, "--reason", "Line one\nline two\u202e.", "--yes")
    shown = policy("show")
    assert shown.out.startswith("# version 2, ")
    assert "# Line one line two<U+202E>.\n" in shown.out
    assert yaml.safe_load(shown.out) == yaml.safe_load(CAREFUL)
    assert yaml.safe_load(policy("show", 1).out)["defaults"]["max_attempts"] == 3
    missing = policy("show", 9)
    assert (missing.code, missing.err) == (1, "There is no policy version 9; the newest is 2.\n")
