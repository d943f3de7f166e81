"""What a program shows in place of a password."""

from __future__ import annotations

from django.conf import settings
from django.contrib.postgres.fields import ArrayField
from django.db import models

from checkpoint.clock import Now
from checkpoint.models.identifiers import uuid7


class Scope(models.TextChoices):
    """What a token may be used for. A scope narrows what its account may do and never widens it."""

    READ = "read", "Read workflows, questions, tools and policies"
    SUBMIT = "submit", "Submit workflows, change and end them"
    DECIDE = "decide", "Answer cases and requests for approval"
    AUDIT = "audit", "Search the audit trail"
    POLICY = "policy", "Put policies in force"


class ApiToken(models.Model):
    """One token of one account. Only its hash is kept: with 256 random bits in it, SHA-256 needs no salt."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    account = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="api_tokens")
    name = models.CharField(max_length=100, help_text="What uses it, for people.")
    beginning = models.CharField(max_length=12, help_text="The token's first characters, by which people tell it.")
    sha256 = models.CharField(max_length=64, unique=True)
    scopes = ArrayField(models.CharField(max_length=10, choices=Scope))
    created_at = models.DateTimeField(db_default=Now())
    expires_at = models.DateTimeField()
    used_at = models.DateTimeField(null=True, help_text="When it was last used, to the minute.")
    revoked_at = models.DateTimeField(null=True)

    def __str__(self) -> str:
        return f"{self.beginning}… {self.name}"
