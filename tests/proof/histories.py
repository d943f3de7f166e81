"""A simulated history as text, so that two of them can be compared: nothing in it depends on when it was played."""

from __future__ import annotations

import re
from datetime import datetime

from checkpoint.models import Attempt, AuditEntry
from tests.proof.simulated_world import World

# Ids, hashes, keys and what is made of them; intents are named after the beginning, too.
_IDENTIFIER = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|[0-9a-f]{12,64}|\b19\d{8}\b")
_MOMENT = re.compile(r"20\d\d-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|\+00:?(?:00)?)")


def history_of(world: World) -> list[str]:
    """The audit trail, every attempt, and what the provider did, in their order."""
    lines: list[str] = []
    for workflow in world.workflows:
        lines += AuditEntry.objects.filter(stream_id=workflow).order_by("seq").values_list("text", flat=True)
        attempts = Attempt.objects.filter(step__workflow=workflow).order_by("step_id", "number")
        lines += [" ".join(map(str, attempt)) for attempt in attempts.values_list()]
    for key, effects in world.provider.effects.items():
        lines += [f"{key} {effect.landed_at} {effect.listed_from} {effect.visible_from}" for effect in effects]
    return _without_origin(lines, world.begin)


def _without_origin(lines: list[str], begin: datetime) -> list[str]:
    """Each identifier by the order of its first mention, each moment by its distance from the beginning."""
    names: dict[str, str] = {}

    def identifier(found: re.Match[str]) -> str:
        return names.setdefault(found[0], f"#{len(names)}")

    def moment(found: re.Match[str]) -> str:
        return str(datetime.fromisoformat(found[0]) - begin)

    return [_IDENTIFIER.sub(identifier, _MOMENT.sub(moment, line)) for line in lines]
