"""Policy versions as people administer them."""

from __future__ import annotations

from checkpoint.models import PolicyVersion


class Policy(PolicyVersion):
    """Carries the right to put policies in force; the rows are the core's."""

    class Meta:
        proxy = True
        default_permissions = ()
        permissions = [("administer_policy", "Can put policies in force")]
