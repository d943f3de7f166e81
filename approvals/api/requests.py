"""A request for approval, a person's answer to it, and taking it back."""

from __future__ import annotations

from uuid import UUID

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from approvals import request_queries, requests, withdrawals
from approvals.api.answers import kept, request_answer
from approvals.api.representations import Answered, RequestShown
from approvals.api.schema import REQUEST_ANSWER
from approvals.decisions import REASON_LIMIT
from checkpoint.api.bodies import texts
from checkpoint.api.replies import Keep, once, reply
from checkpoint.api.schema import KEY, PROBLEMS, REASON
from checkpoint.api.view import CHANNEL, ApiView, caller
from checkpoint.kept_replies import Reply
from checkpoint.models import Approval, Scope


class OneRequest(ApiView):
    """Permission that is asked for."""

    scopes = {"GET": Scope.READ}

    @extend_schema(operation_id="read_approval", responses={200: RequestShown, **PROBLEMS})
    def get(self, request: Request, approval_id: UUID) -> Response:
        """With the exact text of all that it would let run."""
        return Response(_shown(request, request_queries.visible_request(caller(request), approval_id)))


class RequestDecision(ApiView):
    """The answer of one person."""

    scopes = {"POST": Scope.DECIDE}

    @extend_schema(
        operation_id="answer_approval", parameters=[KEY], request=REQUEST_ANSWER, responses={201: Answered, **PROBLEMS}
    )
    @once
    def post(self, request: Request, keep: Keep, approval_id: UUID) -> Reply:
        """Names the hash of what its person was shown: anything else is refused with 409, and changes nothing."""
        given = request_answer(request)
        answered = kept(keep)
        decision = requests.answer(
            approval_id=approval_id,
            kind=given.kind,
            person=caller(request),
            channel=CHANNEL,
            reason=given.reason,
            arguments_hash=given.arguments_hash,
            alongside=answered.keep,
        )
        return answered.reply_to(decision)


class Withdrawal(ApiView):
    """The request is not wanted any more."""

    scopes = {"POST": Scope.SUBMIT}

    @extend_schema(
        operation_id="withdraw_approval", parameters=[KEY], request=REASON, responses={200: RequestShown, **PROBLEMS}
    )
    @once
    def post(self, request: Request, keep: Keep, approval_id: UUID) -> Reply:
        """The step and what follows end. Said twice by the same person it is done once."""
        reason = texts(request, reason=REASON_LIMIT * 4)["reason"]
        withdrawals.withdraw(approval_id=approval_id, person=caller(request), channel=CHANNEL, reason=reason)
        answer = reply(200, _shown(request, request_queries.visible_request(caller(request), approval_id)))
        keep(answer)
        return answer


def _shown(request: Request, approval: Approval) -> object:
    context = {"request": request, "shares": request_queries.shares_of(approval)}
    return RequestShown(approval, context=context).data
