"""Named points where a test can kill or stop a worker process, for real and at an exact place.

Disarmed unless `CHECKPOINT_CRASH_PLAN` names a file. The file holds one line, `POINT STEP SIGNAL` (KILL or STOP; `*`
for any step). The process that reaches the point takes the file away, so that a crash happens once, and ends there.

The points: `before_commit` and `after_commit` of a turn that claims or records a call (`before_commit/claim_execute`,
`after_commit/record_verify` …), `before_call/execute`, `after_call/execute` … in the hand, `call/sending` and
`call/answered` where a tool says so (just before the first byte, just after the answer), `file.write/noted`,
`file.write/renamed` and `sql.execute/before_commit`, `sql.execute/committed` around the moment in which a tool takes
effect, `email.send/handed_over` and `email.send/answered` around the end of a message and the server's reply,
`file.delete/noted`, `file.delete/moved` and `file.delete/told` around its steps, `command.run/ended` after a program
has ended, `bulk/before_commit` and `bulk/after_commit` around the answer to one item of a bulk job, `notice/sent`
between sending a notice and recording that, and of an artifact's bytes (the step is their hash) `artifact/announced`,
`artifact/uploaded`, `artifact/kept` between the commits of its row, and `artifact/doomed` before orphans go;
`object.put/answered` and `object.delete/answered` when a store has answered, `outbox.publish/published` when a
destination has.
"""

from __future__ import annotations

import os
import signal
from pathlib import Path

_PLAN = os.environ.get("CHECKPOINT_CRASH_PLAN", "")

armed = bool(_PLAN)


def reach(point: str, step: str) -> None:
    """Says that the process has come to the point with this step. Here it may end."""
    if not armed:
        return
    planned_point, planned_step, signal_name = _planned()
    if point == planned_point and planned_step in ("*", step) and _take():
        os.kill(os.getpid(), signal.Signals[f"SIG{signal_name}"])


def _planned() -> list[str]:
    try:
        return Path(_PLAN).read_text(encoding="utf-8").split()
    except FileNotFoundError:
        return ["", "", ""]


def _take() -> bool:
    """Of several processes that get here, one wins."""
    try:
        Path(_PLAN).rename(f"{_PLAN}.done")
    except FileNotFoundError:
        return False
    return True
