"""Policies in the console: their versions, what two of them differ in, and putting one in force."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Any

from django.contrib.auth.models import User
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.views.decorators.http import require_http_methods, require_safe

from approvals.permissions import ADMINISTER_POLICY
from approvals.policies import PolicyDocument
from approvals.rules import policy_versions
from approvals.rules.policy_checks import warnings
from approvals.rules.policy_errors import ActivationIncomplete, PolicyInvalid
from approvals.rules.policy_previews import preview
from approvals.rules.policy_summaries import side_by_side, tool_changes
from checkpoint.errors import CheckpointError, Conflict
from checkpoint.models import PolicyVersion
from checkpoint.pages import page
from checkpoint.people import Actor
from checkpoint.permissions import require, workflows_visible_to
from checkpoint.tool_versions import newest_tools

CHANNEL = "console"
VERSIONS_SHOWN = 50


@require_safe
def policies(request: HttpRequest) -> HttpResponse:
    """The versions, newest first."""
    before = _number(request.GET.get("before"))
    found = PolicyVersion.objects.defer("text", "rules").order_by("-number")
    rows = list((found.filter(number__lt=before) if before else found)[: VERSIONS_SHOWN + 1])
    context = {
        "versions": rows[:VERSIONS_SHOWN],
        "following": rows[VERSIONS_SHOWN - 1].number if len(rows) > VERSIONS_SHOWN else None,
        "in_force": policy_versions.in_force().number,
        "may_activate": request.user.has_perm(ADMINISTER_POLICY),
    }
    return page(request, "policies.html", "rows", context)


@require_safe
def policy(request: HttpRequest, number: int) -> HttpResponse:
    """One version: its text, whole."""
    found = policy_versions.version(number)
    context = {
        "version": found,
        "text": policy_versions.text_of(found),
        "rules": policy_versions.document_of(found.pk).rules,
        "in_force": policy_versions.in_force().number,
    }
    return page(request, "policy.html", "whole", context)


@require_safe
def difference(request: HttpRequest) -> HttpResponse:
    """Two versions side by side."""
    old = policy_versions.version(_number(request.GET.get("old")))
    new = policy_versions.version(_number(request.GET.get("new")))
    context = {
        "old": old,
        "new": new,
        "rows": side_by_side(policy_versions.text_of(old), policy_versions.text_of(new)),
        "tools": _tools(policy_versions.document_of(old.pk), policy_versions.document_of(new.pk)),
    }
    return page(request, "policy_difference.html", "whole", context)


@require_http_methods(["GET", "HEAD", "POST"])
def activation(request: HttpRequest) -> HttpResponse:
    """Putting a policy in force, in two steps: look at what it changes, then say why and do it."""
    require(request.user, ADMINISTER_POLICY, action="put policies in force")
    if request.method != "POST":
        return _form(request, _Draft(policy_versions.text_of(policy_versions.in_force())))
    try:
        draft = _posted(request)
    except UnicodeDecodeError as error:
        refusal = f"The file is not UTF-8: byte {error.start}. Save it as UTF-8 and choose it again."
        return _form(request, _Draft(request.POST.get("text", ""), refusal=refusal), status=422)
    if request.POST.get("action") == "activate":
        return _activate(request, draft)
    return _previewed(request, draft)


@dataclass(frozen=True)
class _Draft:
    """What a person has typed or chosen so far, kept when it is refused.

    Attributes:
        field: the field that the refusal is about, if it is about one.
    """

    text: str
    reason: str = ""
    refusal: str = ""
    field: str = ""

    @property
    def fingerprint(self) -> str:
        """Names the text, so that no other is put in force than the one that was looked at."""
        return hashlib.sha256(self.text.encode()).hexdigest()

    def refused(self, why: str, field: str = "") -> _Draft:
        """The same with a refusal."""
        return _Draft(self.text, self.reason, why, field)


def _posted(request: HttpRequest) -> _Draft:
    """A chosen file goes before what is in the text field."""
    chosen = request.FILES.get("file")
    text = chosen.read().decode() if chosen else request.POST.get("text", "")
    return _Draft(policy_versions.in_one_spelling(text), request.POST.get("reason", ""))


def _activate(request: HttpRequest, draft: _Draft) -> HttpResponse:
    if request.POST.get("previewed") != draft.fingerprint:
        changed = "The text is not the one that you looked at. Look at what it changes now, then press again."
        return _previewed(request, draft.refused(changed), status=409)
    user: User = request.user  # type: ignore[assignment]  # nobody gets here without an account
    try:
        stored = policy_versions.activate(
            text=draft.text,
            actor=Actor(user.get_username(), CHANNEL),
            user=user,
            reason=draft.reason,
            seen=_number(request.POST.get("seen")),
        )
    except ActivationIncomplete as refusal:
        return _previewed(request, draft.refused(str(refusal).removeprefix("reason: "), "reason"), status=422)
    except (Conflict, PolicyInvalid) as refusal:
        return _previewed(request, draft.refused(_sentence(refusal)), status=409)
    return redirect("policy", stored.number)


def _sentence(refusal: CheckpointError) -> str:
    """The faults of an invalid policy stand in a list of their own."""
    return "" if isinstance(refusal, PolicyInvalid) else str(refusal)


def _previewed(request: HttpRequest, draft: _Draft, status: int = 200) -> HttpResponse:
    """The form with what the policy changes, or with its faults."""
    try:
        document = policy_versions.check(draft.text)
    except PolicyInvalid as invalid:
        return _form(request, draft, status=422, faults=invalid.faults)
    current = policy_versions.in_force()
    before = policy_versions.document_of(current.pk)
    return _form(
        request,
        draft,
        status=status,
        looked_at=True,
        rows=side_by_side(policy_versions.text_of(current), draft.text),
        tools=_tools(before, document),
        open_work=preview(before, document, workflows_visible_to(request.user)),
        warnings=warnings(document),
    )


def _form(request: HttpRequest, draft: _Draft, *, status: int = 200, **more: Any) -> HttpResponse:
    context = {"draft": draft, "in_force": policy_versions.in_force(), **more}
    return page(request, "policy_activation.html", "whole", context, status=status, seen="")


def _tools(before: PolicyDocument, after: PolicyDocument) -> list[Any]:
    return list(tool_changes(before, after, newest_tools().values()))


def _number(text: str | None) -> int:
    """A version's number from an address or a form; 0, which no version has, where it is none."""
    text = text or ""
    return int(text) if text.isascii() and text.isdigit() and len(text) < 12 else 0
