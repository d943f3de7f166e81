"""Named points where a test can kill or stop a worker process, for real and at an exact place.

Disarmed unless the environment names a point. `CHECKPOINT_CRASH_AT=POINT@STEP` names where ("@STEP" is optional);
`CHECKPOINT_CRASH_SIGNAL` is KILL (default) or STOP; `CHECKPOINT_CRASH_MARK` is a file that is made at the crash,
so that it happens once although the restarted process has the same environment.

The points: `before_commit` and `after_commit` of a turn that claims or records a call (`/claim_execute`,
`/record_execute`, and the same for inspect and verify), and `before_call` and `after_call` (`/execute`, …) in the hand.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterable

_POINT, _, _STEP = os.environ.get("CHECKPOINT_CRASH_AT", "").partition("@")
_SIGNAL = {"KILL": signal.SIGKILL, "STOP": signal.SIGSTOP}[os.environ.get("CHECKPOINT_CRASH_SIGNAL", "KILL")]
_MARK = os.environ.get("CHECKPOINT_CRASH_MARK", "")

armed = bool(_POINT)


def reach(point: str, steps: Iterable[str]) -> None:
    """Says that the process has come to the point for these steps. Here it may end."""
    if point == _POINT and (not _STEP or _STEP in steps) and _first_time():
        os.kill(os.getpid(), _SIGNAL)


def _first_time() -> bool:
    try:
        os.close(os.open(_MARK, os.O_CREAT | os.O_EXCL | os.O_WRONLY))
    except FileExistsError:
        return False
    return True
