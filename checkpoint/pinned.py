"""Immutable rows that workflows and steps pin, kept in memory: policies and tool versions."""

from __future__ import annotations

import uuid
from dataclasses import fields
from functools import lru_cache
from typing import Any

from checkpoint.contracts import Contract
from checkpoint.decide import Policy
from checkpoint.models import PolicyVersion, ToolVersion
from checkpoint.step_rows import StepRow


@lru_cache(maxsize=1000)
def rules(policy_version_id: uuid.UUID) -> dict[str, Any]:
    """The rules of a policy version, as they are stored."""
    stored: dict[str, Any] = PolicyVersion.objects.get(pk=policy_version_id).rules
    return stored


@lru_cache(maxsize=1000)
def policy(policy_version_id: uuid.UUID) -> Policy:
    """How patient a policy version is where no rule of it says otherwise."""
    stored = rules(policy_version_id)
    patience = stored.get("defaults", stored)
    return Policy(**{one.name: patience[one.name] for one in fields(Policy) if one.name in patience})


@lru_cache(maxsize=1000)
def tool_version(tool_version_id: uuid.UUID) -> ToolVersion:
    """A published tool version."""
    return ToolVersion.objects.get(pk=tool_version_id)


@lru_cache(maxsize=5000)
def _contract(tool_version_id: uuid.UUID, variant: str) -> Contract:
    return tool_version(tool_version_id).contract(variant)


def contract(row: StepRow) -> Contract:
    """The contract that a prepared step pins."""
    return _contract(row.tool_version_id, row.variant)
