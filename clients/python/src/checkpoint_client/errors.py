"""What can go wrong, and what to do about it. Every message says both, also to somebody who is offline."""

from __future__ import annotations

from typing import Any


class CheckpointError(Exception):
    """Root of everything that this package raises."""


class Unreachable(CheckpointError):
    """The server did not answer, although it was asked several times under one Idempotency-Key."""


class Refused(CheckpointError):
    """The server refused the request (RFC 9457).

    Attributes:
        status: the HTTP status.
        code: stays the same from release to release.
        problem: the whole answer.
    """

    def __init__(self, status: int, problem: dict[str, Any]) -> None:
        self.status = status
        self.code = str(problem.get("code", ""))
        self.problem = problem
        faults = "".join(f" {each.get('path')}: {each.get('message')}." for each in problem.get("faults", []))
        super().__init__(f"{problem.get('detail') or f'HTTP {status}'}{faults} [{status} {self.code}]")


class NotBegun(CheckpointError):
    """An earlier run began the step and has not said how it went, or the step has ended: do not carry it out."""


class Waiting(CheckpointError):
    """The step may not begin yet: nothing was done. Run again later.

    Attributes:
        waits_for: approval, question, earlier_steps, intent, inspection, time or limit.
        look_at: address of what people are asked; empty where they are not.
    """

    def __init__(self, step: str, waits_for: str, detail: str, look_at: str) -> None:
        self.step = step
        self.waits_for = waits_for
        self.look_at = look_at
        where = f" See {look_at}." if look_at else ""
        super().__init__(f"Step “{step}” was not run, it waits ({waits_for}): {detail}{where} Run again later.")


class NotRecorded(CheckpointError):
    """The step was carried out, and its outcome could not be recorded. Do not repeat it.

    Attributes:
        report: what was to be recorded, for `Client.record`, which takes it late too.
    """

    def __init__(self, step: str, step_id: str, report: dict[str, Any], why: str) -> None:
        self.step_id = step_id
        self.report = report
        super().__init__(
            f"Step “{step}” was carried out, and that could not be recorded: {why} Do not repeat it: send the report"
            f" again with `client.record({step_id!r}, error.report)`. Without it, people are asked whether it happened."
        )


class NotApplied(Exception):
    """Raise it in a step where it is certain that nothing happened: the provider said so, or nothing was sent.

    Any other exception leaves the outcome unknown, and then nobody repeats the step without looking.

    Args:
        code: a short word for programs.
        retry_after: seconds that the provider asked to wait.
        permanent: trying again with the same arguments cannot succeed.
    """

    def __init__(
        self, message: str, *, code: str = "refused", retry_after: float | None = None, permanent: bool = False
    ) -> None:
        self.code = code
        self.retry_after = retry_after
        self.permanent = permanent
        super().__init__(message)
