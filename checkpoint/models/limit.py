"""What all workers together keep to with one tool."""

from __future__ import annotations

from django.db import models


class Limit(models.Model):
    """The row that workers lock, last of all locks, before they start a limited tool's steps.

    How many are in flight is not kept here: the started steps themselves are counted under the lock, so that no crash
    can leave a place taken that nobody holds. `place_at` is when the last place in the line was given out for,
    and `paced_to` until when the starts so far have used the rate up (`pacing.Rate`).
    """

    tool = models.CharField(max_length=100, primary_key=True)
    paced_to = models.DateTimeField(null=True)
    place_at = models.DateTimeField(null=True)

    def __str__(self) -> str:
        return self.tool
