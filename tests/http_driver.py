"""Calls `http.request` the way the engine does: schema first, then the strict model, then the tool."""

from __future__ import annotations

import json
import uuid
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from checkpoint.contracts import Variant
from checkpoint.outcomes import Receipt
from checkpoint.planning.argument_schemas import closed, match_variant, prepare_arguments
from workers.registry import Call, Deadline
from workers.tools.http_arguments import HttpArguments
from workers.tools.http_providers import AllowList, Provider, load
from workers.tools.http_request import HttpRequest
from workers.tools.secrets import Secrets

SCHEMA = closed(HttpArguments.model_json_schema())


def arguments(**given: Any) -> HttpArguments:
    """Arguments that passed the schema and got its defaults, read strictly from canonical JSON."""
    return HttpArguments.model_validate_json(prepare_arguments(SCHEMA, given), strict=True)


def call(*, seconds: float = 60.0, key: str = "", attempt: int = 1) -> Call:
    """A call with a key of its own unless one is given."""
    return Call(
        workflow_id="w1",
        step_name="step",
        key=key or uuid.uuid4().hex,
        fence=1,
        attempt=attempt,
        deadline=Deadline.after(seconds),
    )


def committed(made: Call, receipt: Receipt) -> Call:
    """The same call once its receipt is recorded."""
    return replace(made, operation_id=receipt.operation_id, facts=receipt.facts)


def tool(*providers: dict[str, Any], environ: dict[str, str] | None = None) -> HttpRequest:
    """A tool that knows these providers and this environment."""
    return HttpRequest(AllowList(Provider.model_validate(one) for one in providers), Secrets(environ or {}))


def tool_from(toml: str, folder: Path) -> HttpRequest:
    """A tool with the allow-list of a providers file."""
    file = folder / f"{uuid.uuid4().hex}.toml"
    file.write_text(toml, encoding="utf-8")
    return HttpRequest(load(file), Secrets({}))


def variant_for(made: HttpRequest, given: dict[str, Any]) -> Variant:
    """The variant whose contract holds, picked by the core from the arguments as they are stored."""
    variants = {one.name: one for one in made.variants()}
    stored = json.loads(prepare_arguments(SCHEMA, given))
    return variants[match_variant([asdict(one) for one in variants.values()], stored)]
