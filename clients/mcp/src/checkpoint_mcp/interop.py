"""A workflow's status in the words of two protocols for tasks: MCP (2025-11-25, tasks) and A2A (0.3, TaskState)."""

from __future__ import annotations

from collections.abc import Mapping

# In both, the state in which somebody has to do something: people in the console, or the agent with its next step.
_INPUT = {"mcp": "input_required", "a2a": "input-required"}
_WORKING = {"mcp": "working", "a2a": "working"}

TASK_STATES: Mapping[str, Mapping[str, str]] = {
    "planned": {"mcp": "working", "a2a": "submitted"},
    "executing": _WORKING,
    "verifying": _WORKING,
    "failed_retryable": _WORKING,  # it is tried again by itself
    "awaiting_approval": _INPUT,
    "needs_review": _INPUT,
    "awaiting_agent": _INPUT,
    "completed": {"mcp": "completed", "a2a": "completed"},
    "abandoned": {"mcp": "cancelled", "a2a": "canceled"},
}
