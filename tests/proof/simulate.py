"""`python -m tests.proof.simulate --seeds 2000` plays so many histories; `--seed N` plays one of them again."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time

from checkpoint.config.environment import BASE_DIR
from tests.proof.ground import Ground, prepared

PROCESSES = int(os.environ.get("SIMULATE_PROCESSES") or 2)


def main() -> int:
    """Shares the seeds out to processes with a database each; returns the exit code."""
    arguments = _parser().parse_args()
    if arguments.seed is not None or arguments.shard is not None:
        first, step = (arguments.seed, 1) if arguments.shard is None else (arguments.shard, PROCESSES)
        last = first + 1 if arguments.shard is None else arguments.seeds
        with prepared() as ground:
            return play(ground, range(first, last, step))
    begun = time.monotonic()
    command = [sys.executable, "-m", "tests.proof.simulate", f"--seeds={arguments.seeds}"]
    shards = [subprocess.Popen([*command, f"--shard={shard}"], cwd=BASE_DIR) for shard in range(PROCESSES)]
    failed = [shard.wait() for shard in shards]
    print(f"{arguments.seeds} seeds in {time.monotonic() - begun:.0f} s", "FAILED" if any(failed) else "no violation")
    return 1 if any(failed) else 0


def play(ground: Ground, seeds: range) -> int:
    """Plays the seeds; prints each that violates a law and how to play it again."""
    from tests.proof.invariants import the_audit_chain_holds
    from tests.proof.simulation import REPLAY, simulate
    from tests.proof.stage import Stage

    stage = Stage(ground.addresses.owner)
    broken = 0
    for seed in seeds:
        found = simulate(stage, seed)
        if found:
            broken += 1
            print(f"seed {seed}; again: {REPLAY.format(seed=seed)}", *found, sep="\n  ", flush=True)
    stage.close()
    chain = the_audit_chain_holds()
    print(f"{len(seeds)} seeds, {broken} with violations", *chain, sep="\n  ", flush=True)
    return 1 if broken or chain else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=2000)
    parser.add_argument("--seed", type=int)
    parser.add_argument("--shard", type=int, help=argparse.SUPPRESS)
    return parser


if __name__ == "__main__":
    sys.exit(main())
