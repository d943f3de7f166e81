"""Finds every workflow that can move and has nobody on it (S41, S46). Lost messages cost a sweep, nothing else."""

from __future__ import annotations

from checkpoint import leases


def sweep() -> bool:
    """Ends dead processes and wakes what was left alone; returns whether anything can be moved now."""
    leases.end_dead_processes()
    leases.wake_workflows_left_alone()
    return leases.anything_due()
