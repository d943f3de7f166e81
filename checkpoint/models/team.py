"""A team owns workflows; its members see them."""

from __future__ import annotations

from django.conf import settings
from django.db import models

from checkpoint.models.identifiers import uuid7


class Team(models.Model):
    """Who owns a workflow. One sees and decides only within one's teams."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    slug = models.SlugField(max_length=60, unique=True)
    name = models.CharField(max_length=120)
    members = models.ManyToManyField(settings.AUTH_USER_MODEL, related_name="teams", blank=True)

    class Meta:
        permissions = [("administer_people", "Can administer accounts, groups and teams")]

    def __str__(self) -> str:
        return self.name
