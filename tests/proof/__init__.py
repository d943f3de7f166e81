"""Proof that does not depend on hand-picked crash points; docs/proof.md says what it covers.

`invariants` says what must hold, read from the database and from a provider's ledger. `explorer` kills a worker process
at every durable boundary, and at every boundary of what recovers from that. `simulation` plays many workers under one
seed on the real server. `mutations` takes one safeguard out at a time, to show that the proofs notice.
"""
