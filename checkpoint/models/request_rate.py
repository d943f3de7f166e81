"""How much of its rate of requests a token has used up."""

from __future__ import annotations

from django.db import models

from checkpoint.models.api_token import ApiToken


class RequestRate(models.Model):
    """One row for each token that was ever used; `request_rates` alone writes it. The table is unlogged."""

    token = models.OneToOneField(ApiToken, primary_key=True, on_delete=models.CASCADE, related_name="+")
    used_up_to = models.DateTimeField()

    def __str__(self) -> str:
        return f"rate of {self.token_id}"
