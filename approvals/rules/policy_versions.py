"""Policy versions: which one is in force, and putting another in force. One transaction, one audit entry.

A version is written once and never changes. The newest is in force; workflows stay pinned to the one they were planned
under, and the policy's own `drift` says what a newer one does to them.
"""

from __future__ import annotations

import hashlib
from functools import lru_cache
from uuid import UUID

import yaml
from django.contrib.auth.models import User
from django.db import IntegrityError

from approvals.permissions import ADMINISTER_POLICY
from approvals.policies import PolicyDocument
from approvals.rules.policy_checks import group_faults
from approvals.rules.policy_documents import in_todays_form, read_policy, stored_policy
from approvals.rules.policy_errors import ActivationIncomplete, PolicyInvalid, PolicyUnchanged
from checkpoint import audit, reasons
from checkpoint.errors import Forbidden, NotFound, StaleView
from checkpoint.gates import open_requests
from checkpoint.models import PolicyVersion
from checkpoint.people import Actor
from checkpoint.permissions import require
from checkpoint.trail import denials
from checkpoint.transactions import one_transaction

REASON_LIMIT = 4000
LAST_NUMBER = 2**31 - 1


def in_force() -> PolicyVersion:
    """The newest version."""
    return PolicyVersion.objects.order_by("-number")[0]


def version(number: int) -> PolicyVersion:
    """The version of that number. Raises NotFound."""
    found = PolicyVersion.objects.filter(number=number).first() if 0 < number <= LAST_NUMBER else None
    if found is None:
        raise NotFound(f"There is no policy version {number}; the newest is {in_force().number}.")
    return found


@lru_cache(maxsize=100)
def document_of(policy_version_id: UUID) -> PolicyDocument:
    """The policy of a version, read once: a version never changes."""
    return stored_policy(PolicyVersion.objects.get(pk=policy_version_id).rules)


def text_of(stored: PolicyVersion) -> str:
    """The text of a version. For one from before texts were kept, its rules as one would write them today."""
    return stored.text or yaml.safe_dump(in_todays_form(stored.rules), sort_keys=False, allow_unicode=True)


def in_one_spelling(text: str) -> str:
    """The text with the line ends of Unix: browsers and editors change them, and the hash must not."""
    return text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")


def check(text: str) -> PolicyDocument:
    """The policy in a text, as it would be put in force.

    Raises:
        PolicyInvalid: every fault, groups that do not exist among them.
    """
    document, stored = read_policy(text)
    if faults := group_faults(stored):
        raise PolicyInvalid(faults)
    return document


def activate(*, text: str, actor: Actor, user: User | None, reason: str, seen: int) -> PolicyVersion:
    """Puts a policy in force, for every start from now on.

    Args:
        user: the account in whose name it is done, and whose rights count; None for the machine's operator.
        seen: number of the version in force that the person compared it with.

    Raises:
        Forbidden: the person may not administer policies.
        ActivationIncomplete: no reason, or it is too long.
        PolicyInvalid: every fault of the text.
        PolicyUnchanged: the text is in force already.
        StaleView: another version came into force since the person looked.
    """
    text = in_one_spelling(text)
    try:
        stored = _activate(text, actor, user, reason.strip(), seen)
    except Forbidden as refusal:
        denials.record(actor=actor, verb="activate", subject="policy", reason=str(refusal))
        raise
    except IntegrityError:
        raise _stale(in_force()) from None
    open_requests.reconsider()
    return stored


def is_text_of(text: str, version: PolicyVersion) -> bool:
    """Whether it is this version's text, however its lines end."""
    return in_one_spelling(text) == text_of(version)


@one_transaction
def _activate(text: str, actor: Actor, user: User | None, reason: str, seen: int) -> PolicyVersion:
    if user is not None:
        # Read again: an account that was disabled, or lost the right, counts at once (S25).
        require(User.objects.get(pk=user.pk), ADMINISTER_POLICY, action="put policies in force")
    _check_reason(reason)
    check(text)
    current = in_force()
    if is_text_of(text, current):
        raise PolicyUnchanged(f"It is active already, as version {current.number}; nothing was changed.")
    if current.number != seen:
        raise _stale(current)
    return _store(text, actor, reason, current)


def _store(text: str, actor: Actor, reason: str, current: PolicyVersion) -> PolicyVersion:
    _, rules = read_policy(text)
    stored = PolicyVersion.objects.create(
        number=current.number + 1,
        sha256=hashlib.sha256(text.encode()).hexdigest(),
        text=text,
        rules=rules,
        reason=reason,
        author=actor.name,
    )
    entry = audit.Entry(
        stream=audit.SYSTEM_STREAM,
        actor=actor,
        verb="activate",
        subject=str(stored),
        before=str(current),
        after=str(stored),
        reason=reason,
        details={"sha256": stored.sha256},
    )
    audit.append_to_system([entry])
    return stored


def _check_reason(reason: str) -> None:
    wanted = "say in a sentence why; it is kept with the version and in the audit trail."
    if found := reasons.problem(reason, wanted=wanted, limit=REASON_LIMIT):
        raise ActivationIncomplete(f"reason: {found}")


def _stale(current: PolicyVersion) -> StaleView:
    return StaleView(
        f"{current.author} put version {current.number} in force since you looked: {current.reason[:200]} "
        "Compare with that one and decide again."
    )
