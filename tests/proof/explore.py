"""`python -m tests.proof.explore`: every boundary and every pair of them, each with a real SIGKILL; prints what it saw.

EXPLORE_PROCESSES shares the work out, each with a database and an outside world of its own.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time

import pytest

from checkpoint.config.environment import BASE_DIR
from tests.proof.ground import Ground, prepared

PROCESSES = int(os.environ.get("EXPLORE_PROCESSES") or 2)


def main() -> int:
    """Explores in so many processes; returns the exit code."""
    arguments = _parser().parse_args()
    if arguments.shard is not None:
        with prepared() as ground:
            return explore_shard(arguments.shard, arguments.each, arguments.names, ground)
    begun = time.monotonic()
    command = [sys.executable, "-m", "tests.proof.explore", *sys.argv[1:]]
    shards = [subprocess.Popen([*command, f"--shard={shard}"], cwd=BASE_DIR) for shard in range(PROCESSES)]
    failed = [shard.wait() for shard in shards]
    print(f"explored in {time.monotonic() - begun:.0f} s: {'violations, see above' if any(failed) else 'no violation'}")
    return 1 if any(failed) else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help="subjects; by default all")
    parser.add_argument("--each", type=int, default=1, help="of the pairs only about each so many-th; 0 for none")
    parser.add_argument("--shard", type=int, help=argparse.SUPPRESS)
    return parser


def explore_shard(shard: int, each: int, names: list[str], ground: Ground) -> int:
    """One process's share of all subjects; returns the exit code."""
    from tests.proof.explorer import Explorer, Part
    from tests.proof.invariants import the_audit_chain_holds
    from tests.proof.outside import outside_world
    from tests.proof.subjects import named

    with outside_world(ground.folder, ground.addresses.superuser) as outside:
        explorer = Explorer(outside, ground.folder, ground.addresses.owner)
        for subject in named(names):
            before = explorer.counts
            explorer.counts = type(before)()
            try:
                explorer.explore(subject, Part(shard, PROCESSES, each))
            except pytest.skip.Exception as why:
                print(f"[{shard}] {subject.name} is left out: {why}", flush=True)
            print(f"[{shard}] {subject.name}: {explorer.counts}", *explorer.counts.violations, sep="\n  ", flush=True)
            explorer.counts = before + explorer.counts
        broken = [*explorer.counts.violations, *map(str, the_audit_chain_holds())]
        print(f"[{shard}] all: {explorer.counts}", *broken, sep="\n", flush=True)
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
