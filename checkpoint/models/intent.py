"""One business effect in the world."""

from __future__ import annotations

from django.db import models

from checkpoint.clock import Now
from checkpoint.models.identifiers import uuid7
from checkpoint.models.step import Step
from checkpoint.models.team import Team


class Intent(models.Model):
    """Holds an idempotency key for ever. One effect has one key, and one step owns it.

    The row is written in the transaction that prepares the step; PostgreSQL refuses a second owner of a key.
    Where the caller named the effect (`name`, once for each team and tool), other steps may want it too: they wait for
    the owner and take its receipt, and only an owner that was never sent passes it on.
    """

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    team = models.ForeignKey(Team, on_delete=models.PROTECT, db_index=False)
    owner = models.OneToOneField(Step, on_delete=models.PROTECT, related_name="intent")
    tool = models.CharField(max_length=100, default="", blank=True, help_text="Of a named intent.")
    name = models.CharField(max_length=200, default="", blank=True)
    key = models.CharField(max_length=64, unique=True)
    arguments_hash = models.CharField(max_length=64)
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["team", "tool", "name"], condition=~models.Q(name=""), name="intent_name_once"
            )
        ]

    def __str__(self) -> str:
        return self.key
