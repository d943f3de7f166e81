"""Steps that a person makes by answering: the question is a case, and the answer is the step's receipt.

Such a step stays `prepared` while it is asked about: nothing is sent, no lease and no hand are spent on it, and a
workflow that is abandoned meanwhile ends at once. Its arguments hold `title`, `instructions` and `form`, a small subset
of JSON Schema that the tool's own schema bounds; perhaps `answer_within_seconds`. All of it is an agent's text.
"""

from __future__ import annotations

from datetime import UTC, timedelta
from typing import Any

from checkpoint.canonical import parse
from checkpoint.errors import DecisionIncomplete, Fault, SubmissionInvalid
from checkpoint.explaining.hostile_text import plain
from checkpoint.models import Case
from checkpoint.planning.answerable_forms import LARGEST_ANSWER
from checkpoint.planning.argument_schemas import closed, prepare_arguments
from checkpoint.rows.step_rows import StepRow
from checkpoint.states import CaseReason
from checkpoint.transitions import Changes
from checkpoint.turns import verdicts


def ask(changes: Changes, row: StepRow) -> None:
    """Opens the question about a prepared step whose turn it is."""
    arguments = row.arguments_value
    said = "\n\n".join(filter(None, (arguments["title"], arguments["instructions"])))
    within = arguments.get("answer_within_seconds")
    answer_by = "" if within is None else (changes.now + timedelta(seconds=within)).astimezone(UTC).isoformat()
    verdicts.open_case(changes, row, CaseReason.HUMAN_TASK, [], said=said, answer_by=answer_by)


def checked_answer(arguments: Any, data: Any) -> Any:
    """The answer as it is kept: held against the form, defaults filled in, canonical.

    Raises:
        DecisionIncomplete: it is not what the form asks for; the message names every field, as the form labels it.
    """
    if not isinstance(data, dict):
        raise DecisionIncomplete("data: this task asks for a filled-in form, as a JSON object.")
    try:
        text = prepare_arguments(closed({"type": "object", **arguments["form"]}), data)
    except SubmissionInvalid as error:
        faults = "; ".join(f"{_labelled(arguments['form'], fault)} {fault.message}" for fault in error.faults[:20])
        raise DecisionIncomplete(f"data: {faults}.") from error
    if len(text.encode()) > LARGEST_ANSWER:
        raise DecisionIncomplete(f"data: the answer is larger than {LARGEST_ANSWER} bytes; shorten it.")
    return parse(text)


def _labelled(form: Any, fault: Fault) -> str:
    """The field that a fault is about, in the words of the page and in those of the API."""
    name = fault.path.lstrip("/")
    title = form["properties"].get(name, {}).get("title")
    return f"“{plain(title)}” ({name})" if title else name or "the form"


def is_kept(case: Case, data: Any) -> bool:
    """Whether an answer that is given again says what the receipt says; also where nothing was filled in."""
    receipt = case.step.receipt
    if data is None or receipt is None:
        return True
    try:
        given = checked_answer(parse(case.step.arguments or "{}"), data)
    except DecisionIncomplete:
        return False
    return bool(given == receipt.facts_value.get("answer"))
