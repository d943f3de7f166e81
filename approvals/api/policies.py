"""Policies: read, tried on the open work, and put in force."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.exceptions import ParseError
from rest_framework.request import Request
from rest_framework.response import Response

from approvals.api.representations import PolicyInList, PolicyShown, PolicyTried
from approvals.api.schema import POLICY, POLICY_TEXT
from approvals.rules import policy_versions
from approvals.rules.policy_checks import warnings
from approvals.rules.policy_previews import preview
from checkpoint.api import paging
from checkpoint.api.bodies import body_of
from checkpoint.api.replies import Keep, once, reply
from checkpoint.api.schema import KEY, PROBLEMS, pages_of
from checkpoint.api.view import ApiView, actor_of, caller
from checkpoint.errors import SubmissionInvalid
from checkpoint.kept_replies import Reply
from checkpoint.models import PolicyVersion, Scope
from checkpoint.permissions import workflows_visible_to
from checkpoint.planning.documents import LARGEST_DOCUMENT
from checkpoint.planning.members import Members

_SHOWN = 50


class Policies(ApiView):
    """The versions."""

    scopes = {"GET": Scope.READ, "POST": Scope.POLICY}

    @extend_schema(
        operation_id="list_policies",
        parameters=[OpenApiParameter(paging.AFTER, description="From “next” of the page before.")],
        responses={200: pages_of(PolicyInList), **PROBLEMS},
    )
    def get(self, request: Request) -> Response:
        """The newest first; the first of all is in force."""
        found = PolicyVersion.objects.defer("text", "rules").order_by("-number")
        if before := _number(request):
            found = found.filter(number__lt=before)
        rows = list(found[: _SHOWN + 1])
        following = f"{request.path}?{paging.AFTER}={rows[_SHOWN - 1].number}" if len(rows) > _SHOWN else None
        shown = PolicyInList(rows[:_SHOWN], many=True, context={"request": request}).data
        return Response({"items": shown, "next": following})

    @extend_schema(
        operation_id="activate_policy", parameters=[KEY], request=POLICY, responses={201: PolicyShown, **PROBLEMS}
    )
    @once
    def post(self, request: Request, keep: Keep) -> Reply:
        """Puts a policy in force, for every start from now on. `seen` names the version that it was compared with."""
        text, reason, seen = _policy(request)
        stored = policy_versions.activate(
            text=text, actor=actor_of(request), user=caller(request), reason=reason, seen=seen
        )
        shown = _shown(request, stored)
        answer = reply(201, shown, location=shown["url"])
        keep(answer)
        return answer


class OnePolicy(ApiView):
    """One version."""

    scopes = {"GET": Scope.READ}

    @extend_schema(operation_id="read_policy", responses={200: PolicyShown, **PROBLEMS})
    def get(self, request: Request, number: int) -> Response:
        """With its text, whole."""
        return Response(_shown(request, policy_versions.version(number)))


class PolicyTrial(ApiView):
    """A policy that is not in force."""

    scopes = {"POST": Scope.READ}

    @extend_schema(
        operation_id="try_policy", parameters=[KEY], request=POLICY_TEXT, responses={200: PolicyTried, **PROBLEMS}
    )
    @once
    def post(self, request: Request, keep: Keep) -> Reply:
        """What it would change for the open steps that the caller sees. Nothing is stored but this answer."""
        document = policy_versions.check(policy_versions.in_one_spelling(_text(request)))
        current = policy_versions.in_force()
        found = preview(policy_versions.document_of(current.pk), document, workflows_visible_to(caller(request)))
        answer = reply(
            200,
            {
                "compared_with": current.number,
                "warnings": list(warnings(document)),
                "looked_at": found.looked_at,
                "complete": found.complete,
                "changes": [asdict(change) | {"workflows": change.shown} for change in found.changes],
            },
        )
        keep(answer)
        return answer


def _shown(request: Request, stored: PolicyVersion) -> dict[str, Any]:
    context = {"request": request, "text": policy_versions.text_of(stored)}
    shown: dict[str, Any] = dict(PolicyShown(stored, context=context).data)
    return shown


def _policy(request: Request) -> tuple[str, str, int]:
    document = body_of(request).document
    faults = list(document.faults)
    members = Members(document.value, "", faults)
    text = members.text("text", longest=LARGEST_DOCUMENT)
    reason = members.text("reason", longest=policy_versions.REASON_LIMIT * 4)
    seen = members.take("seen", int)
    members.refuse_the_rest()
    if faults:
        raise SubmissionInvalid(faults)
    return text, reason, seen or 0


def _text(request: Request) -> str:
    document = body_of(request).document
    faults = list(document.faults)
    members = Members(document.value, "", faults)
    text = members.text("text", longest=LARGEST_DOCUMENT)
    members.refuse_the_rest()
    if faults:
        raise SubmissionInvalid(faults)
    return text


def _number(request: Request) -> int:
    text = request.query_params.get(paging.AFTER, "")
    if text and not (text.isascii() and text.isdecimal() and len(text) < 10):
        raise ParseError(f"{paging.AFTER}: this is no version; take the address of the next page from “next”.")
    return int(text or "0")
