"""A case, and a person's answer to it."""

from __future__ import annotations

from uuid import UUID

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from approvals import decisions, queries, signatures
from approvals.api.answers import case_answer, kept
from approvals.api.representations import Answered, CaseShown
from approvals.api.schema import CASE_ANSWER
from checkpoint.api.replies import Keep, once
from checkpoint.api.schema import KEY, PROBLEMS
from checkpoint.api.view import CHANNEL, ApiView, caller, versioned
from checkpoint.kept_replies import Reply
from checkpoint.models import Scope


class OneCase(ApiView):
    """One question about what happened."""

    scopes = {"GET": Scope.READ}

    @extend_schema(operation_id="read_case", responses={200: CaseShown, **PROBLEMS})
    def get(self, request: Request, case_id: UUID) -> Response:
        """What is known, what is not, what was tried, and the answers that are allowed now."""
        case = queries.visible_case(caller(request), case_id)
        context = {"request": request, "allowed": [kind.value for kind in signatures.rules_of(case)]}
        return versioned(request, CaseShown(case, context=context).data, case.step.version)


class CaseDecision(ApiView):
    """The answer."""

    scopes = {"POST": Scope.DECIDE}

    @extend_schema(
        operation_id="decide_case", parameters=[KEY], request=CASE_ANSWER, responses={201: Answered, **PROBLEMS}
    )
    @once
    def post(self, request: Request, keep: Keep, case_id: UUID) -> Reply:
        """Names what its person saw: another version or other arguments are refused with 409, and change nothing."""
        given = case_answer(request)
        answered = kept(keep)
        decision = decisions.decide(
            case_id=case_id,
            kind=given.kind,
            person=caller(request),
            channel=CHANNEL,
            reason=given.reason,
            operation_id=given.operation_id,
            step_version=given.step_version,
            arguments_hash=given.arguments_hash,
            data=given.data,
            alongside=answered.keep,
        )
        return answered.reply_to(decision)
