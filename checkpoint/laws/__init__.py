"""The laws as PostgreSQL triggers, generated from `states.py`.

Python states each law for the message, PostgreSQL for the truth. None of them can be switched off by a setting, and
the application's role neither owns the tables nor may TRUNCATE.
A trigger's WHEN clause holds the law, so that a lawful row costs no function call.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import StrEnum

from checkpoint import states
from checkpoint.laws.functions import FUNCTIONS, RESULT_FUNCTIONS

APPEND_ONLY = (
    "checkpoint_evidence",
    "checkpoint_artifact",
    "checkpoint_auditentry",
    "checkpoint_policyversion",
    "checkpoint_toolversion",
)
NEVER_DELETED = (
    "checkpoint_workerprocess",
    "checkpoint_workflow",
    "checkpoint_step",
    "checkpoint_attempt",
    "checkpoint_case",
    "checkpoint_auditstream",
    "checkpoint_intent",
)


def changed(*columns: str) -> str:
    """SQL that says whether an UPDATE changes one of the columns."""
    return " OR ".join(f"NEW.{column} IS DISTINCT FROM OLD.{column}" for column in columns)


# Table and name of the law, and when an UPDATE breaks it. What says what the effect is, what was asked and how it ended
# is written once; numbers that guards compare only rise.
_FIXED = {
    ("checkpoint_workflow", "identity_is_fixed"): changed(
        "id", "team_id", "kind", "goal", "constraints", "input", "input_hash"
    ),
    ("checkpoint_workflow", "version_never_falls"): "NEW.version < OLD.version",
    ("checkpoint_step", "identity_is_fixed"): changed("id", "workflow_id", "position", "name", "template"),
    ("checkpoint_step", "written_ahead_is_fixed"): (
        f"OLD.arguments IS NOT NULL AND ({changed('arguments', 'arguments_hash', 'idempotency_key')})"
    ),
    ("checkpoint_step", "version_never_falls"): "NEW.version < OLD.version",
    ("checkpoint_step", "fence_never_falls"): "NEW.fence < OLD.fence",
    ("checkpoint_step", "attempts_never_fall"): "NEW.attempt_count < OLD.attempt_count",
    ("checkpoint_attempt", "body_is_fixed"): changed(
        "id", "step_id", "number", "fence", "worker_id", "started_at", "deadline_at"
    ),
    ("checkpoint_attempt", "ending_is_final"): (
        f"OLD.ended_at IS NOT NULL AND ({changed('ended_at', 'ending', 'detail')})"
        " OR OLD.applied IS NOT NULL AND NEW.applied IS DISTINCT FROM OLD.applied"
    ),
    ("checkpoint_case", "question_is_fixed"): changed(
        "id", "workflow_id", "step_id", "reason", "sentence", "findings", "step_version", "arguments_hash", "opened_at"
    ),
    ("checkpoint_case", "closing_is_final"): f"OLD.closed_at IS NOT NULL AND ({changed('closed_at', 'closing')})",
    ("checkpoint_auditstream", "head_only_goes_on"): (
        f"{changed('id', 'name')} OR NEW.last_seq < OLD.last_seq"
        " OR NEW.last_seq = OLD.last_seq AND NEW.last_hash <> OLD.last_hash"
    ),
}


def install(application_role: str) -> str:
    """SQL that creates every function and trigger, and takes from the application's role what they refuse."""
    return "\n".join([*FUNCTIONS.values(), *_triggers(), *_rights(application_role)])


def approvals() -> Iterable[str]:
    """SQL by which an approval's request is written once, moves along its arrows, and is kept."""
    table = "checkpoint_approval"
    yield from status_laws(table, states.APPROVAL_INITIAL, states.APPROVAL_ARROWS)
    asked = ("id", "workflow_id", "step_id", "rule", "arguments_hash", "policy_version_id", "tool_version_id")
    yield law(table, "request_is_fixed", "UPDATE", changed(*asked, "requested_at", "expires_at"))
    closed = f"OLD.closed_at IS NOT NULL AND ({changed('closed_at', 'closing', 'usable_from')})"
    yield law(table, "closing_is_final", "UPDATE", closed)
    yield from never_deleted(table)


def plan_approvals() -> Iterable[str]:
    """SQL by which the shares of a plan's approval stay together."""
    yield law("checkpoint_approval", "plan_is_fixed", "UPDATE", changed("part_of_id", "plan_hash"))


def stored_bytes() -> Iterable[str]:
    """SQL by which bytes stay what they are, and stay at all once an artifact names them."""
    table = "checkpoint_storedbytes"
    yield law(table, "identity_is_fixed", "UPDATE", changed("sha256", "size"))
    yield law(table, "named_is_final", "UPDATE", "OLD.named AND NOT NEW.named")
    yield law(table, "named_stays", "DELETE", "OLD.named")


# What a verified step came to. Its version, wait and lease are free: a late report still touches them.
_RESULT = (
    "standing", "operation_id", "receipt_id", "attempts_allowed", "attempt_count", "committed_at", "verified_at",
)  # fmt: skip


def results() -> Iterable[str]:
    """SQL by which a receipt is the step's own, a verified result stands, and who submitted a workflow stays known."""
    yield from RESULT_FUNCTIONS.values()
    step, workflow = "checkpoint_step", "checkpoint_workflow"
    yield law(step, "begins_without_receipt", "INSERT", "NEW.receipt_id IS NOT NULL")
    yield (
        f"CREATE TRIGGER law_receipt_of_own_step BEFORE UPDATE ON {step} FOR EACH ROW"
        f" WHEN (NEW.receipt_id IS NOT NULL AND ({changed('receipt_id')}))"
        " EXECUTE FUNCTION checkpoint_receipt_of_own_step();"
    )
    yield law(step, "verified_stands", "UPDATE", f"OLD.status = 'verified' AND ({changed(*_RESULT)})")
    yield (
        f"CREATE TRIGGER law_completed_has_steps BEFORE UPDATE OF status ON {workflow} FOR EACH ROW"
        " WHEN (NEW.status = 'completed' AND OLD.status <> NEW.status)"
        " EXECUTE FUNCTION checkpoint_completed_has_steps();"
    )
    yield law(
        workflow, "submitter_is_fixed", "UPDATE", f"NEW.submitted_by_id IS NOT NULL AND ({changed('submitted_by_id')})"
    )
    yield (
        f"CREATE CONSTRAINT TRIGGER law_submitter_is_erased AFTER UPDATE OF submitted_by_id ON {workflow}"
        " DEFERRABLE INITIALLY DEFERRED FOR EACH ROW"
        " WHEN (OLD.submitted_by_id IS NOT NULL AND NEW.submitted_by_id IS NULL)"
        " EXECUTE FUNCTION checkpoint_submitter_is_erased();"
    )


def uninstall() -> str:
    """SQL that drops them; triggers go with their functions."""
    return "\n".join(f"DROP FUNCTION {name}() CASCADE;" for name in FUNCTIONS)


def _triggers() -> Iterable[str]:
    yield from status_laws("checkpoint_workflow", states.WORKFLOW_INITIAL, states.WORKFLOW_ARROWS)
    yield from status_laws("checkpoint_step", states.STEP_INITIAL, states.STEP_ARROWS)
    yield from status_laws("checkpoint_case", states.CASE_INITIAL, states.CASE_ARROWS)
    for (table, name), broken_when in _FIXED.items():
        yield law(table, name, "UPDATE", broken_when)
    for table in APPEND_ONLY:
        yield from append_only(table)
    for table in NEVER_DELETED:
        yield from never_deleted(table)
    yield (
        "CREATE TRIGGER law_may_end BEFORE UPDATE OF status ON checkpoint_workflow FOR EACH ROW"
        " WHEN (NEW.status IN ('completed', 'abandoned') AND OLD.status <> NEW.status)"
        " EXECUTE FUNCTION checkpoint_workflow_may_end();"
    )
    yield (
        "CREATE TRIGGER law_enters_open_workflow AFTER INSERT ON checkpoint_step REFERENCING NEW TABLE AS arrived"
        " FOR EACH STATEMENT EXECUTE FUNCTION checkpoint_step_enters_open_workflow();"
    )


def status_laws[T: StrEnum](table: str, initial: Iterable[T], arrows: Mapping[T, frozenset[T]]) -> Iterable[str]:
    """SQL by which a table's status begins in an initial state and moves along the arrows."""
    legal = [
        f"OLD.status = '{source}' AND NEW.status IN ({_quoted(targets)})"
        for source, targets in arrows.items()
        if targets
    ]
    yield law(table, "initial_states_only", "INSERT", f"NEW.status NOT IN ({_quoted(initial)})")
    yield law(table, "legal_arrows_only", "UPDATE", f"OLD.status <> NEW.status AND NOT ({' OR '.join(legal)})")


def append_only(table: str, *, erasable: str = "") -> Iterable[str]:
    """SQL by which a table's rows are written once and kept.

    Args:
        erasable: a column that may be set to null: an account can be erased, its name stays in the row as text.
    """
    altered = f"NOT (NEW.{erasable} IS NULL AND to_jsonb(NEW) - '{erasable}' = to_jsonb(OLD) - '{erasable}')"
    yield law(table, "append_only", "UPDATE", altered if erasable else "")
    yield from never_deleted(table)


def never_deleted(table: str) -> Iterable[str]:
    """SQL by which a table's rows are kept."""
    yield law(table, "never_deleted", "DELETE")
    yield (
        f"CREATE TRIGGER law_never_truncated BEFORE TRUNCATE ON {table} FOR EACH STATEMENT"
        " EXECUTE FUNCTION checkpoint_refuse('never_truncated');"
    )


def _rights(role: str) -> Iterable[str]:
    """SQL that takes from the application's role what the laws refuse anyway."""
    for table in APPEND_ONLY:
        yield f'REVOKE UPDATE, DELETE, TRUNCATE ON {table} FROM "{role}";'
    for table in NEVER_DELETED:
        yield f'REVOKE DELETE, TRUNCATE ON {table} FROM "{role}";'


def law(table: str, name: str, operation: str, broken_when: str = "") -> str:
    """SQL that refuses an INSERT, UPDATE or DELETE: every one, or those of rows for which the condition holds."""
    condition = f" WHEN ({broken_when})" if broken_when else ""
    return (
        f"CREATE TRIGGER law_{name} BEFORE {operation} ON {table} FOR EACH ROW{condition}"
        f" EXECUTE FUNCTION checkpoint_refuse('{name}');"
    )


def _quoted(values: Iterable[str]) -> str:
    return ", ".join(f"'{value}'" for value in sorted(values))
