"""Finds every workflow that can move and has nobody on it (S41, S46). Lost messages cost a sweep, nothing else."""

from __future__ import annotations

from checkpoint import kept_replies, leases


def sweep() -> bool:
    """Ends dead processes, wakes what was left alone, forgets old replies; returns whether anything can move now."""
    leases.end_dead_processes()
    leases.wake_workflows_left_alone()
    kept_replies.collect()
    return leases.anything_due()
