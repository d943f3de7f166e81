"""Tokens by which programs reach the API: issued and revoked by administrators, checked at every request.

A token acts as its account. What the account may not do, no scope allows; a disabled account's tokens are refused at
once (S25).
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Collection
from datetime import timedelta
from uuid import UUID

from django.contrib.auth.models import User
from django.db.models import QuerySet

from checkpoint import audit, clock, reasons
from checkpoint.canonical import string_problem
from checkpoint.errors import ActionIncomplete, NotFound, TokenRefused
from checkpoint.identity.accounts import REASON_LIMIT, By, administrator_of
from checkpoint.models import ApiToken, Scope
from checkpoint.permissions import ADMINISTER_PEOPLE, Person, admit
from checkpoint.transactions import one_transaction

PREFIX = "cp_"  # by which scanners for leaked secrets know it
LONGEST_LIFETIME = timedelta(days=366)
_LONGEST_NAME = 100
_SHOWN = 12  # characters
_USE_IS_NOTED_EVERY = timedelta(minutes=1)


@one_transaction
def issue(by: By, account: User, *, name: str, scopes: Collection[str], lifetime: timedelta) -> tuple[ApiToken, str]:
    """A new token and its text, which is kept nowhere.

    Args:
        name: what will use it.
        lifetime: after which it ends, at most LONGEST_LIFETIME.

    Raises:
        Forbidden: no right to administer people.
        ActionIncomplete: no reason or name, an unknown scope or none, or a lifetime that is not allowed.
    """
    administrator_of(by)
    reason, name, wanted = _checked(by.reason, name, scopes, lifetime)
    text = PREFIX + secrets.token_urlsafe(32)
    now = clock.now()
    token = ApiToken.objects.create(
        account=account,
        name=name,
        beginning=text[:_SHOWN],
        sha256=_hash(text),
        scopes=wanted,
        created_at=now,
        expires_at=now + lifetime,
    )
    _audit(by, "issue", token, reason)
    return token, text


@one_transaction
def revoke(by: By, token_id: UUID) -> ApiToken:
    """Ends a token at once; one that is revoked already stays as it is.

    Raises:
        Forbidden: no right to administer people.
        NotFound: no such token.
        ActionIncomplete: no reason.
    """
    administrator_of(by)
    reason = _checked_reason(by.reason)
    token = ApiToken.objects.select_for_update(of=("self",)).select_related("account").filter(pk=token_id).first()
    if token is None:
        raise NotFound(f"There is no token {token_id}.")
    if token.revoked_at is None:
        token.revoked_at = clock.now()
        token.save(update_fields=["revoked_at"])
        _audit(by, "revoke", token, reason)
    return token


def check(text: str) -> ApiToken:
    """The token with this text, with its account; notes its use, to the minute.

    Raises:
        TokenRefused: it is none, has expired or been revoked, or its account is disabled.
    """
    token = ApiToken.objects.select_related("account").filter(sha256=_hash(text)).first()
    if token is None:
        raise TokenRefused("This is no token of this installation. Ask an administrator for one.")
    now = clock.now()
    if token.revoked_at is not None:
        raise TokenRefused(f"The token was revoked at {token.revoked_at:%Y-%m-%d %H:%M} UTC. Ask for another one.")
    if token.expires_at <= now:
        raise TokenRefused(f"The token expired at {token.expires_at:%Y-%m-%d %H:%M} UTC. Ask for another one.")
    if not token.account.is_active:
        raise TokenRefused("The token's account is disabled. Ask an administrator.")
    if token.used_at is None or token.used_at < now - _USE_IS_NOTED_EVERY:
        ApiToken.objects.filter(pk=token.pk).update(used_at=now)
    return token


def account_in_force(token_id: UUID) -> User | None:
    """The account of a token, read anew with its rights; None once the token has ended or the account is disabled."""
    in_force = ApiToken.objects.filter(revoked_at=None, expires_at__gt=clock.now(), account__is_active=True)
    token = in_force.select_related("account").filter(pk=token_id).first()
    return token.account if token else None


def tokens(person: Person | None) -> QuerySet[ApiToken]:
    """All tokens, the newest first; None is whoever runs a command on this machine. Raises Forbidden."""
    admit(person, ADMINISTER_PEOPLE, action="administer people")
    return ApiToken.objects.select_related("account").order_by("-id")


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()


def _checked(reason: str, name: str, scopes: Collection[str], lifetime: timedelta) -> tuple[str, str, list[str]]:
    name = name.strip()
    if not name or len(name) > _LONGEST_NAME or string_problem(name):
        raise ActionIncomplete("name", f"say in 1 to {_LONGEST_NAME} characters what will use the token.")
    unknown = sorted(set(scopes) - set(Scope.values))
    if unknown or not scopes:
        raise ActionIncomplete(
            "scopes", f"choose some of {', '.join(Scope.values)}; not {', '.join(unknown) or 'none'}."
        )
    if not timedelta(0) < lifetime <= LONGEST_LIFETIME:
        raise ActionIncomplete("lifetime", f"a token lives up to {LONGEST_LIFETIME.days} days.")
    return _checked_reason(reason), name, [scope for scope in Scope.values if scope in scopes]


def _checked_reason(reason: str) -> str:
    text = reason.strip()
    wanted = "say in a sentence why; it is kept in the audit trail."
    if found := reasons.problem(text, wanted=wanted, limit=REASON_LIMIT):
        raise ActionIncomplete("reason", found)
    return text


def _audit(by: By, verb: str, token: ApiToken, reason: str) -> None:
    details = {"token": str(token.pk), "scopes": token.scopes, "expires_at": token.expires_at.isoformat()}
    subject = f"token {token.beginning}… of person {token.account.get_username()}"
    audit.append_to_system([audit.Entry(audit.SYSTEM_STREAM, by.actor, verb, subject, reason=reason, details=details)])
