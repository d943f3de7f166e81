"""Reads stored policies for the core, which asks them before a step starts but does not know their language."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from approvals.policies import rule
from approvals.rules.policy_documents import stored_policy
from approvals.rules.policy_errors import PolicyInvalid
from approvals.rules.strictness import plan_approval
from checkpoint.errors import RecordDamaged
from checkpoint.gates.rulings import Interpreter, Judge


def _read(rules: Mapping[str, Any]) -> Judge:
    try:
        return partial(rule, stored_policy(dict(rules)))
    except PolicyInvalid as error:
        raise RecordDamaged(f"a stored policy cannot be read: {error}") from error


INTERPRETER = Interpreter(read=_read, govern=plan_approval)
