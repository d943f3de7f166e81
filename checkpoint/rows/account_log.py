"""Writes what happens to accounts, groups and teams, and who signs in and out, to the system's audit stream.

By Django's signals, so that no way of changing an account goes round it but SQL and `QuerySet.update`. What an entry
says happens in the transaction of the change where there is one, else directly after it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Any

from django.contrib.auth.models import Group, Permission, User
from django.contrib.auth.signals import user_logged_in, user_logged_out, user_login_failed
from django.db import transaction
from django.db.models import Model
from django.db.models.signals import m2m_changed, post_save, pre_delete, pre_save
from django.http import HttpRequest

from checkpoint import audit, occasions
from checkpoint.models import Team
from checkpoint.people import ANONYMOUS, Actor
from checkpoint.trail import denials

_LONGEST_NAME = 150
# What is watched. Values of the fields in _SECRET are not written down: a hash, and an address that may be erased.
_WATCHED: dict[type[Model], tuple[str, ...]] = {
    User: ("username", "is_active", "is_superuser", "password", "email"),
    Group: ("name",),
    Team: ("slug", "name"),
}
_SECRET = {"password", "email"}
_BEFORE = "_audited_before"


@dataclass(frozen=True)
class _Membership:
    """A many-to-many relation between who holds something and what is held.

    Attributes:
        forward, backward: the names of the relation on the model that declares it, and on the other one.
        held_by_source: whether the declaring model's side is the holder.
    """

    forward: str
    backward: str
    held_by_source: bool = True


_MEMBERSHIPS: dict[Any, _Membership] = {
    User.groups.through: _Membership("groups", "user_set"),
    User.user_permissions.through: _Membership("user_permissions", "user_set"),
    Group.permissions.through: _Membership("permissions", "group_set"),
    Team.members.through: _Membership("members", "teams", held_by_source=False),
}


def connect() -> None:
    """Begins to listen; called once, when Django has loaded the models."""
    for model in _WATCHED:
        pre_save.connect(_remember, sender=model)
        post_save.connect(_note_saved, sender=model)
        pre_delete.connect(_note_deletion, sender=model)
    for through in _MEMBERSHIPS:
        m2m_changed.connect(_note_membership, sender=through)
    user_logged_in.connect(_note_sign_in)
    user_logged_out.connect(_note_sign_out)
    user_login_failed.connect(_deny_sign_in)


def _remember(sender: type[Model], instance: Any, update_fields: Collection[str] | None, **kwargs: Any) -> None:
    """Keeps what is stored now; nothing for a new row, and None where no watched field is about to be written."""
    fields = [name for name in _WATCHED[sender] if update_fields is None or name in update_fields]
    stored = sender._default_manager.filter(pk=instance.pk).values(*fields).first() if fields else None
    setattr(instance, _BEFORE, stored or {})


def _note_saved(sender: type[Model], instance: Any, created: bool, **kwargs: Any) -> None:
    if created:
        after = "superuser" if getattr(instance, "is_superuser", False) else ""
        _note([_entry("create", _label(instance), after=after)])
        return
    before: dict[str, Any] = getattr(instance, _BEFORE)
    changed = [name for name, value in before.items() if value != getattr(instance, name)]
    _note([_change(instance, name, before[name]) for name in changed])


def _change(instance: Any, field: str, before: Any) -> audit.Entry:
    subject, after = _label(instance), getattr(instance, field)
    if field in _SECRET:
        return _entry("change", subject, details={"field": field})
    if field == "is_active":
        return _entry("enable" if after else "disable", subject, before=_activity(before), after=_activity(after))
    return _entry("change", subject, before=f"{field} {before}", after=f"{field} {after}", details={"field": field})


def _activity(active: bool) -> str:
    return "active" if active else "disabled"


def _note_deletion(sender: type[Model], instance: Any, **kwargs: Any) -> None:
    _note([_entry("delete", _label(instance))])


def _note_membership(
    sender: Any, instance: Any, action: str, reverse: bool, pk_set: set[Any] | None, model: type[Model], **kwargs: Any
) -> None:
    """One entry for each thing granted or revoked. What is revoked is read while it is still held."""
    if action not in {"post_add", "pre_remove", "pre_clear"}:
        return
    membership = _MEMBERSHIPS[sender]
    others = model._default_manager.filter(pk__in=pk_set or ())
    if action != "post_add":
        held = getattr(instance, membership.backward if reverse else membership.forward).all()
        others = held if action == "pre_clear" else held.filter(pk__in=pk_set)
    instance_holds = membership.held_by_source is not reverse
    pairs = [(instance, other) if instance_holds else (other, instance) for other in others]
    if action == "post_add":
        _note([_entry("grant", _label(holder), after=_label(held)) for holder, held in pairs])
    else:
        _note([_entry("revoke", _label(holder), before=_label(held)) for holder, held in pairs])


def _label(thing: Any) -> str:
    """How the trail names a thing."""
    match thing:
        case User():
            return f"person {thing.get_username()}"
        case Group():
            return f"group {thing.name}"
        case Team():
            return f"team {thing.slug}"
        case Permission():
            return f"permission {thing.content_type.app_label}.{thing.codename}"
    raise TypeError(f"the trail has no name for a {type(thing).__name__}")


def _note_sign_in(sender: Any, request: HttpRequest | None, user: User, **kwargs: Any) -> None:
    _note_session("sign_in", request, user)


def _note_sign_out(sender: Any, request: HttpRequest | None, user: User | None, **kwargs: Any) -> None:
    if user is not None:
        _note_session("sign_out", request, user)


def _note_session(verb: str, request: HttpRequest | None, user: User) -> None:
    actor = Actor(user.get_username(), occasions.current().actor().channel)
    _note([audit.Entry(audit.SYSTEM_STREAM, actor, verb, _label(user), details=_address(request))])


def _deny_sign_in(sender: Any, credentials: dict[str, Any], request: HttpRequest | None = None, **kwargs: Any) -> None:
    """The name is what was typed, and nobody's until it is proved."""
    typed = str(credentials.get("username", ""))[:_LONGEST_NAME]
    actor = Actor(ANONYMOUS, occasions.current().actor().channel)
    reason = "Name and password do not match an active account."
    denials.record(actor=actor, verb="sign_in", subject=f"person {typed}", reason=reason, **_address(request))


def _address(request: HttpRequest | None) -> dict[str, Any]:
    address = request.META.get("REMOTE_ADDR", "") if request is not None else ""
    return {"address": address} if address else {}


def _entry(verb: str, subject: str, **content: Any) -> audit.Entry:
    occasion = occasions.current()
    return audit.Entry(audit.SYSTEM_STREAM, occasion.actor(), verb, subject, reason=occasion.reason, **content)


def _note(entries: Iterable[audit.Entry]) -> None:
    """In the transaction that is open, or in one of its own."""
    collected = list(entries)
    if collected:
        with transaction.atomic():
            audit.append_to_system(collected)
