"""The contract of a tool in force when a step was planned."""

from __future__ import annotations

from typing import Any

from django.db import models

from checkpoint.clock import Now
from checkpoint.contracts import Contract
from checkpoint.models.identifiers import uuid7
from checkpoint.models.team import Team


class ToolVersion(models.Model):
    """A tool as the workers published it, or as it was registered for the agents of one team.

    Immutable; a changed contract is a new row, and the newest row is in force.

    `variants` is a list of {name, when, contract} in the order in which they are tried.
    """

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    team = models.ForeignKey(Team, null=True, on_delete=models.PROTECT, db_index=False, help_text="Null: everybody's.")
    name = models.CharField(max_length=100)
    version = models.CharField(max_length=40)
    summary = models.TextField()
    schema = models.JSONField(help_text="JSON Schema of the arguments, with defaults.")
    variants = models.JSONField()
    sha256 = models.CharField(max_length=64)
    published_at = models.DateTimeField(db_default=Now())

    class Meta:
        permissions = [("register_tool", "Can register tools that the agents of one's teams carry out themselves")]
        indexes = [models.Index(fields=["name", "-published_at"], name="tool_version_newest")]

    def __str__(self) -> str:
        return f"{self.name}@{self.version}"

    def contract(self, variant: str) -> Contract:
        """The contract of the named variant."""
        return Contract.from_json(self._variant(variant)["contract"])

    def _variant(self, name: str) -> dict[str, Any]:
        return next(variant for variant in self.variants if variant["name"] == name)
