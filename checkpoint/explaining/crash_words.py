"""What a crash in the middle of a call means for a tool, in words: what its contract lets the machine do."""

from __future__ import annotations

from checkpoint.contracts import Contract, RecoveryClass

_ASKS = "A person is asked; the machine never sends it again."


def after_crash(contract: Contract) -> str:
    """What happens once a call may have been sent and no outcome is recorded."""
    if contract.asks:
        return "There is nothing to lose: the effect is a person's answer, and the question stays."
    match contract.recovery:
        case RecoveryClass.READ_ONLY:
            return "It is run again: it changes nothing."
        case RecoveryClass.IDEMPOTENT:
            return _idempotent(contract)
        case RecoveryClass.QUERYABLE:
            return (
                f"It is looked up. Found counts as done. Absent counts only {_settled(contract)}, and then it is sent"
                " again with the same key. Without a clear answer a person is asked."
            )
        case RecoveryClass.OPAQUE:
            return (
                f"Nothing can look it up. {_ASKS} Only what the flight recorder of the dead worker proves settles it."
            )


def _idempotent(contract: Contract) -> str:
    first = "It is looked up, and where it is absent" if contract.can_inspect else "It is"
    when = "" if contract.concurrent_same_key_safe else f", {_settled(contract)}"
    if contract.key_lifetime is None:
        return f"{first} sent again with the same key{when}: the provider ignores a repetition."
    past = "it is looked up" if contract.can_inspect else "a person is asked"
    return (
        f"{first} sent again with the same key{when}: the provider ignores a repetition for"
        f" {contract.key_lifetime:g} s after the first. Past that {past}."
    )


def _settled(contract: Contract) -> str:
    return f"once the first can no longer land, {contract.deadline + contract.settle:g} s after it started"


def limits(contract: Contract) -> str:
    """How much of it may happen at once; empty without a limit."""
    told = []
    if contract.in_flight is not None:
        told.append(f"at most {contract.in_flight} in flight")
    if contract.starts_per_minute is not None:
        burst = f", {contract.burst} of them at once" if contract.burst is not None else ""
        told.append(f"at most {contract.starts_per_minute:g} starts a minute{burst}")
    return "; ".join(told)
