"""Proof that does not depend on hand-picked crash points.

`invariants` says what must hold, read from the database and from a provider's ledger. `explorer` kills a worker process
at every durable boundary, and at every boundary of what recovers from that.
"""
