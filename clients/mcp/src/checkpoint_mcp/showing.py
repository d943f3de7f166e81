"""What an agent is shown: short, no free text outside of a member `quoted`, and the page of each question."""

from __future__ import annotations

from typing import Any

from checkpoint_mcp.interop import TASK_STATES

MOST_STEPS = 50
_FINISHED = ("verified", "abandoned", "superseded")
_STEP = ("name", "position", "tool", "status", "standing", "attempts", "uncertain", "tries")
_QUESTION = ("noun", "id", "workflow_id", "step", "tool", "status", "reason", "opened_at", "requested_at", "expires_at")


def submitted(made: dict[str, Any], console: str) -> dict[str, Any]:
    """The workflow that was stored."""
    stored = {"workflow_id": made["id"], "status": made["status"], "steps": made["steps"]}
    return {**stored, "console": f"{console}/workflows/{made['id']}/"}


def appended(made: dict[str, Any]) -> dict[str, Any]:
    """The steps that were stored, and the workflow that they belong to."""
    workflow = made["workflow"]
    steps = [{member: step[member] for member in ("name", "position", "status")} for step in made["steps"]]
    return {"workflow_id": workflow["id"], "status": workflow["status"], "sealed": workflow["sealed"], "steps": steps}


def status(explanation: dict[str, Any], console: str) -> dict[str, Any]:
    """Where a workflow is; of a long plan what is not finished comes first, in the plan's order."""
    steps = sorted(explanation["steps"], key=lambda step: step["status"] in _FINISHED)
    return {
        "workflow_id": explanation["id"],
        "status": explanation["status"],
        "task_state": TASK_STATES[explanation["status"]],
        "partial": explanation["partial"],
        "sentence": explanation["sentence"],
        "steps": [_step(step, console) for step in steps[:MOST_STEPS]],
        "steps_left_out": max(0, len(steps) - MOST_STEPS),
        "console": f"{console}/workflows/{explanation['id']}/",
    }


def questions(page: dict[str, Any], console: str) -> dict[str, Any]:
    """What people are asked, each with the page where they answer; `after` is where the next page begins."""
    shown = [_question(item, console) for item in page["items"]]
    return {"questions": shown, "after": shown[-1]["id"] if page["next"] else None}


def _step(step: dict[str, Any], console: str) -> dict[str, Any]:
    asked = [
        {"id": case["id"], "reason": case["reason"], "answered_at": _page(console, "case", case["id"])}
        for case in step["questions"]
    ]
    if (request := step["request"]) and request["status"] == "pending":
        asked.append(
            {"id": request["id"], "reason": "approval", "answered_at": _page(console, "approval", request["id"])}
        )
    shown = {member: step[member] for member in _STEP if step[member] != ""}
    if step["waived"]:
        shown["waived"] = {"quoted": step["waived"]}
    return {**shown, "next": step["outlook"]["words"], "not_before": step["outlook"]["at"], "asked": asked}


def _question(item: dict[str, Any], console: str) -> dict[str, Any]:
    shown = {member: item[member] for member in _QUESTION if item.get(member) is not None}
    if "sentence" in item:
        shown["sentence"] = {"quoted": item["sentence"]}
    return {**shown, "answered_at": _page(console, item["noun"], item["id"])}


def _page(console: str, noun: str, id: str) -> str:
    return f"{console}/{noun}s/{id}/"
