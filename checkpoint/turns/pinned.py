"""Immutable rows that workflows and steps pin, kept in memory: policies and tool versions."""

from __future__ import annotations

import uuid
from dataclasses import fields
from functools import lru_cache
from typing import Any

from checkpoint.budgets import Policy
from checkpoint.contracts import Contract
from checkpoint.gates.rulings import Judge, Limits, Ruling, StepDescription, judge
from checkpoint.models import PolicyVersion, ToolVersion
from checkpoint.rows.step_rows import StepRow


@lru_cache(maxsize=1000)
def _stored(policy_version_id: uuid.UUID) -> dict[str, Any]:
    rules: dict[str, Any] = PolicyVersion.objects.get(pk=policy_version_id).rules
    return rules


@lru_cache(maxsize=1000)
def _judge(policy_version_id: uuid.UUID) -> Judge:
    return judge(_stored(policy_version_id))


def has_rules(policy_version_id: uuid.UUID) -> bool:
    """Whether a policy version distinguishes between steps at all."""
    return bool(_stored(policy_version_id).get("rules"))


@lru_cache(maxsize=1000)
def has_limits(policy_version_id: uuid.UUID) -> bool:
    """Whether a policy version limits anything. What is no policy counts as one that does: reading it says so."""
    try:
        return any("limits" in rule["set"] for rule in _stored(policy_version_id).get("rules") or ())
    except (KeyError, TypeError):
        return True


def ruling(policy_version_id: uuid.UUID, description: StepDescription) -> Ruling:
    """What a policy version asks of a step.

    Raises:
        RecordDamaged: what is stored is no policy.
    """
    return _judge(policy_version_id)(description)


@lru_cache(maxsize=1000)
def policy(policy_version_id: uuid.UUID) -> Policy:
    """How patient a policy version is where no rule of it says otherwise."""
    stored = _stored(policy_version_id)
    patience = stored.get("defaults", stored)
    return Policy(**{one.name: patience[one.name] for one in fields(Policy) if one.name in patience})


@lru_cache(maxsize=1000)
def policy_number(policy_version_id: uuid.UUID) -> int:
    """The number by which people know a policy version."""
    return PolicyVersion.objects.only("number").get(pk=policy_version_id).number


@lru_cache(maxsize=1000)
def tool_version(tool_version_id: uuid.UUID) -> ToolVersion:
    """A published tool version."""
    return ToolVersion.objects.get(pk=tool_version_id)


@lru_cache(maxsize=1000)
def by_agent(tool_version_id: uuid.UUID) -> bool:
    """Whether the agent makes the tool's calls itself. All variants of a tool agree (`tool_versions`)."""
    return any(variant["contract"].get("by_agent") for variant in tool_version(tool_version_id).variants)


@lru_cache(maxsize=5000)
def _contract(tool_version_id: uuid.UUID, variant: str) -> Contract:
    return tool_version(tool_version_id).contract(variant)


def contract(row: StepRow) -> Contract:
    """The contract that a prepared step pins."""
    return _contract(row.tool_version_id, row.variant)


@lru_cache(maxsize=5000)
def _limits(tool_version_id: uuid.UUID, variant: str) -> Limits:
    return Limits().over(_contract(tool_version_id, variant))


def limits(row: StepRow) -> Limits:
    """The limits that the tool of a prepared step declares."""
    return _limits(row.tool_version_id, row.variant)
