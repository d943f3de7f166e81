"""The rights of those who decide."""

from __future__ import annotations

DECIDE_CASE = "approvals.decide_case"
