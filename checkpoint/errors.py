"""The error tree. Every message says what happened and what to do next; `code` is stable and machine-readable."""

from __future__ import annotations

from dataclasses import dataclass


class CheckpointError(Exception):
    """Root of everything this package raises on purpose.

    Attributes:
        code: stable identifier for programs, the same in API, command line and console.
    """

    code = "checkpoint_error"


@dataclass(frozen=True)
class Fault:
    """One thing that is wrong in a submission.

    Attributes:
        path: JSON pointer (RFC 6901) to the place in the submitted document.
        message: what is wrong there and what would be accepted.
    """

    path: str
    message: str

    def __str__(self) -> str:
        return f"{self.path or '/'}: {self.message}"


class SubmissionInvalid(CheckpointError):
    """The submitted document has faults; nothing was stored. All faults are reported at once."""

    code = "submission_invalid"

    def __init__(self, faults: list[Fault]) -> None:
        self.faults = faults
        super().__init__("; ".join(str(fault) for fault in faults))


class ValueNotCanonical(CheckpointError, ValueError):
    """A value that RFC 8785 cannot carry exactly, at `path` (JSON pointer)."""

    code = "value_not_canonical"

    def __init__(self, path: str, message: str) -> None:
        self.path = path
        self.message = message
        super().__init__(f"{path or '/'}: {message}")


class ArgumentsInvalid(SubmissionInvalid):
    """Arguments do not fit the tool: at submission, or later when results have taken the place of references.

    All faults at once, with paths inside the arguments.
    """

    code = "arguments_invalid"


class ReferenceUnresolved(CheckpointError):
    """An argument refers to a result that does not hold the value it names."""

    code = "reference_unresolved"


class NotFound(CheckpointError):
    """The thing does not exist, or this person may not see it; the two are the same answer on purpose."""

    code = "not_found"


class Forbidden(CheckpointError):
    """The person may see the thing but lacks the right for this action (HTTP 403)."""

    code = "forbidden"


class AuthenticateAgain(Forbidden):
    """The policy wants a person who authenticated shortly before, and this one did not, or gave a wrong password."""

    code = "authenticate_again"


class FilterInvalid(CheckpointError):
    """What a search is to be narrowed to cannot be read; the message names each fault."""

    code = "filter_invalid"


class Conflict(CheckpointError):
    """The thing moved on since it was looked at, or is in a state that does not allow the action (HTTP 409)."""

    code = "conflict"


class CaseClosed(Conflict):
    """Somebody already decided this case; the message says who, when and what."""

    code = "case_closed"


class ApprovalClosed(Conflict):
    """The request for approval was answered, used, withdrawn or ran out; the message says how."""

    code = "approval_closed"


class BulkJobClosed(Conflict):
    """The bulk job was aborted or is done; the message says which, and when."""

    code = "bulk_job_closed"


class StaleView(Conflict):
    """The step's version or the arguments' hash is not what the person saw."""

    code = "stale_view"


class DecisionNotAllowed(Conflict):
    """The case's reason does not allow this decision; the message lists those it allows."""

    code = "decision_not_allowed"


class DecisionIncomplete(CheckpointError):
    """A field that this decision needs is missing or too long."""

    code = "decision_incomplete"


class ActionIncomplete(CheckpointError):
    """A field of a person's action is missing, too long, or names nothing that there is; `field` says which."""

    code = "action_incomplete"

    def __init__(self, field: str, message: str) -> None:
        self.field = field
        super().__init__(f"{field}: {message}")


class AlreadyAssigned(Conflict):
    """Somebody else has the case; the message says who, since when."""

    code = "already_assigned"


class AlreadySnoozed(Conflict):
    """Somebody put the case aside already; the message says who, and until when."""

    code = "already_snoozed"


class AlreadyEscalated(Conflict):
    """Those on call were told already; the message says by whom, and when."""

    code = "already_escalated"


class AlreadyAnswered(Conflict):
    """The person gave this answer before, with other words; the message says which words stand."""

    code = "already_answered"


class AlreadySigned(Conflict):
    """The person has answered this case, and another person's answer is needed; the message says what was answered."""

    code = "already_signed"


class AlreadyEnding(Conflict):
    """The workflow has ended or is being wound down; the message says which."""

    code = "already_ending"


class ReferenceTaken(Conflict):
    """The team has a workflow of that reference."""

    code = "reference_taken"


class PlanSealed(Conflict):
    """The plan is sealed: nothing is appended to it any more."""

    code = "plan_sealed"


class StepNotBegun(Conflict):
    """The agent cannot begin the step: a worker does, it has ended, or it is begun; the message says which."""

    code = "step_not_begun"


class FenceMoved(Conflict):
    """Somebody else acts on the step, or the call's deadline is over: stop, do nothing more in the world."""

    code = "fence_moved"


class EditRefused(Conflict):
    """The step cannot be changed so: it was sent, nothing would change, or the key is closed; the message says it."""

    code = "edit_refused"


class CompensationRefused(Conflict):
    """The effect cannot be undone so, or not now; the message says why, and what could be done."""

    code = "compensation_refused"


class TooMany(Conflict):
    """As many of these are kept as there may be."""

    code = "too_many"


class TooManyFollowers(CheckpointError):
    """As many streams of events are open as one token, or one web process, may have (HTTP 429)."""

    code = "too_many_streams"

    def __init__(self, message: str, *, retry_after: float = 0.0) -> None:
        self.retry_after = retry_after  # seconds
        super().__init__(message)


class BudgetTooSmall(CheckpointError):
    """What a resume packet must hold does not fit into the budget that was given; `needed` is in the same unit."""

    code = "budget_too_small"

    def __init__(self, needed: int) -> None:
        self.needed = needed
        super().__init__(f"The packet needs {needed} for what it must hold; ask for a larger budget.")


class LeaseLost(CheckpointError):
    """The fence has moved: another worker or a person acts on the step now. Stop, write nothing."""

    code = "lease_lost"


class IllegalMove(CheckpointError):
    """A state change that `states.py` does not allow."""

    code = "illegal_move"


class RecordDamaged(CheckpointError):
    """A stored record does not match its own hash."""

    code = "record_damaged"


class AnchorKeyUnusable(CheckpointError):
    """The key that signs audit anchors is missing or of the wrong kind; nothing was anchored."""

    code = "anchor_key_unusable"


class AnchorUnreadable(CheckpointError):
    """What was given is no anchor, or not as it was signed; it proves nothing."""

    code = "anchor_unreadable"


class ArtifactTooLarge(CheckpointError):
    """The artifact has more bytes than one artifact, or all of its workflow, may have; no artifact was stored."""

    code = "artifact_too_large"


class ArtifactMismatch(RecordDamaged):
    """The bytes of an artifact are gone, or are not those that were stored, or the workflow has no such artifact."""

    code = "artifact_mismatch"


class BytesNotKept(CheckpointError):
    """Bytes were brought, but not kept until their row could be written: bring them again."""

    code = "bytes_not_kept"


class TokenRefused(CheckpointError):
    """The token is none, has ended, or its account is disabled (HTTP 401); the message says which."""

    code = "token_refused"


class KeyReused(CheckpointError):
    """The Idempotency-Key came before with another request (HTTP 422)."""

    code = "idempotency_key_reused"


class RequestUnderWay(Conflict):
    """The first request under this Idempotency-Key has not been answered yet (HTTP 409)."""

    code = "request_under_way"

    def __init__(self, message: str, *, retry_after: float = 0.0) -> None:
        self.retry_after = retry_after  # seconds
        super().__init__(message)
