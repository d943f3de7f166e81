"""The rights of those who decide, and of those who look after notices."""

from __future__ import annotations

DECIDE_CASE = "approvals.decide_case"
ADMINISTER_NOTICES = "approvals.administer_notices"
RECEIVE_ESCALATIONS = "approvals.receive_escalations"
DECIDE_APPROVAL = "approvals.decide_approval"
ADMINISTER_POLICY = "approvals.administer_policy"
