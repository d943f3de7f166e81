"""Policies and steps for tests, written as a person would write them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from approvals.policies import PolicyDocument, StepDescription
from approvals.rules.policy_documents import read_policy
from approvals.rules.policy_errors import PolicyInvalid
from checkpoint.config.environment import BASE_DIR
from checkpoint.contracts import Reversibility

CAREFUL = (BASE_DIR / "examples" / "policies" / "careful.yaml").read_text(encoding="utf-8")


def document(*rules: dict[str, Any], **defaults: Any) -> PolicyDocument:
    """A policy with these rules, each named by its place unless it has a name."""
    named = [{"name": f"rule {index}", **each} for index, each in enumerate(rules)]
    return read_policy(json.dumps({"defaults": defaults, "rules": named}))[0]


def step(arguments: Any = None, **changes: Any) -> StepDescription:
    """An irreversible charge of team billing."""
    described = {
        "tool": "card.charge",
        "reversibility": Reversibility.IRREVERSIBLE,
        "kind": "refund",
        "team": "billing",
    }
    return StepDescription(**{**described, **changes}, arguments=None if arguments is None else json.dumps(arguments))


def faults(value: Any) -> list[str]:
    """What is wrong with a policy, as "place: message"."""
    with pytest.raises(PolicyInvalid) as caught:
        read_policy(value if isinstance(value, str) else json.dumps(value))
    return [str(fault) for fault in caught.value.faults]
