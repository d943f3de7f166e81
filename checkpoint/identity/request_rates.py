"""How often a token may call, counted for all web processes together.

One row for each token holds until when its requests so far have used the rate up (the generic cell rate algorithm): a
burst of the whole limit, then as many as the rate gives back. The statement that counts is the one that decides, so
however many processes ask at once, no more are let in. The table is unlogged: counting waits for no disk, and a crash
of the database forgets the counts, which lets too many in for a moment and keeps nobody out.
"""

from __future__ import annotations

from uuid import UUID

from checkpoint.rows import statements

_TAKE = """
INSERT INTO checkpoint_requestrate AS rate (token_id, used_up_to)
VALUES (%(token)s, checkpoint_now() + make_interval(secs => %(each)s))
ON CONFLICT (token_id) DO UPDATE
  SET used_up_to = greatest(rate.used_up_to, checkpoint_now()) + make_interval(secs => %(each)s)
  WHERE greatest(rate.used_up_to, checkpoint_now()) + make_interval(secs => %(each)s)
    <= checkpoint_now() + make_interval(secs => %(per)s)
RETURNING 1
"""
_WAIT = """
SELECT extract(epoch FROM used_up_to + make_interval(secs => %(each)s - %(per)s) - checkpoint_now())
FROM checkpoint_requestrate WHERE token_id = %(token)s
"""


def take(token_id: UUID, *, most: int, seconds: float) -> float:
    """Counts a request of the token: at most so many in so many seconds.

    Returns:
        0 where it may be carried out, else the seconds to wait; then it was not counted.
    """
    each = seconds / most
    if statements.fetch(_TAKE, token=token_id, each=each, per=seconds):
        return 0.0
    waits = statements.fetch(_WAIT, token=token_id, each=each, per=seconds)
    return max(float(waits[0][0]), 0.001) if waits else 0.001
