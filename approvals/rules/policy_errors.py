"""What can be wrong with activating a policy."""

from __future__ import annotations

from checkpoint.errors import Conflict, DecisionIncomplete, SubmissionInvalid


class PolicyInvalid(SubmissionInvalid):
    """The policy has faults; nothing was stored. All are reported at once."""

    code = "policy_invalid"


class PolicyUnchanged(Conflict):
    """The text is the one in force already."""

    code = "policy_unchanged"


class ActivationIncomplete(DecisionIncomplete):
    """The reason is missing or too long."""

    code = "activation_incomplete"
