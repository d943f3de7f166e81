"""`python -m tests.proof.explore`: every boundary and every pair of them, each with a real SIGKILL; prints what it saw.

Arguments: names of subjects (default: all). EXPLORE_PROCESSES shares the work out, each with a database of its own.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Sequence

from checkpoint.config.environment import BASE_DIR
from tests.proof.ground import Ground, prepared

PROCESSES = int(os.environ.get("EXPLORE_PROCESSES") or 2)


def main(names: Sequence[str]) -> int:
    """Explores in so many processes; returns the exit code."""
    begun = time.monotonic()
    shards = [_start(shard, names) for shard in range(PROCESSES)]
    failed = [shard.wait() for shard in shards]
    print(f"explored in {time.monotonic() - begun:.0f} s: {'violations, see above' if any(failed) else 'no violation'}")
    return 1 if any(failed) else 0


def _start(shard: int, names: Sequence[str]) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "tests.proof.explore", f"--shard={shard}", *names]
    return subprocess.Popen(command, cwd=BASE_DIR)


def explore_shard(shard: int, names: Sequence[str], ground: Ground) -> int:
    """One process's share of all subjects; returns the exit code."""
    from tests.proof.explorer import Explorer, Part
    from tests.proof.invariants import the_audit_chain_holds
    from tests.proof.subjects import SUBJECTS, outside_world

    with outside_world(ground.folder) as outside:
        explorer = Explorer(outside, ground.folder, ground.addresses.owner)
        for subject in SUBJECTS:
            if not names or subject.name in names:
                before = explorer.counts
                explorer.counts = type(before)()
                explorer.explore(subject, Part(shard, PROCESSES))
                print(f"[{shard}] {subject.name}: {explorer.counts}", flush=True)
                explorer.counts = before + explorer.counts
        broken = [*explorer.counts.violations, *map(str, the_audit_chain_holds())]
        print(f"[{shard}] all: {explorer.counts}", *broken, sep="\n", flush=True)
    return 1 if broken else 0


if __name__ == "__main__":
    given = sys.argv[1:]
    if given and given[0].startswith("--shard="):
        with prepared() as ground:
            sys.exit(explore_shard(int(given[0].partition("=")[2]), given[1:], ground))
    sys.exit(main(given))
