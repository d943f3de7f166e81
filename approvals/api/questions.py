"""All that people are asked, as the review queue lists it."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import OpenApiParameter, PolymorphicProxySerializer, extend_schema, inline_serializer
from rest_framework import serializers
from rest_framework.exceptions import ParseError
from rest_framework.request import Request
from rest_framework.response import Response

from approvals.api.representations import CaseInList, RequestInList
from approvals.inbox import question_list
from approvals.inbox.question_list import Question
from approvals.inbox.review_queue import Shown
from checkpoint.api import paging
from checkpoint.api.schema import PROBLEMS
from checkpoint.api.view import ApiView, caller
from checkpoint.models import Case, Scope

_EITHER = PolymorphicProxySerializer(
    component_name="Question", serializers=[CaseInList, RequestInList], resource_type_field_name=None, many=True
)
_PAGE = inline_serializer(
    "PageOfQuestions",
    {"items": _EITHER, "next": serializers.CharField(allow_null=True)},
)


class Questions(ApiView):
    """Cases and requests for approval."""

    scopes = {"GET": Scope.READ}

    @extend_schema(
        operation_id="list_questions",
        parameters=[
            OpenApiParameter("shown", enum=list(Shown), description="Which list; waiting."),
            OpenApiParameter(paging.AFTER, description="From “next” of the page before."),
        ],
        responses={200: _PAGE, **PROBLEMS},
    )
    def get(self, request: Request) -> Response:
        """What cannot be undone first, then the oldest; `noun` says what each is."""
        page = question_list.questions(caller(request), shown=_shown(request), after=paging.place(request))
        return paging.answer(request, page, lambda row: _represent(row, request))


def _represent(question: Question, request: Request) -> dict[str, Any]:
    context = {"request": request}
    if isinstance(question.about, Case):
        return {"noun": question.noun, **CaseInList(question.about, context=context).data}
    return {"noun": question.noun, **RequestInList(question.about, context=context).data}


def _shown(request: Request) -> Shown:
    text = request.query_params.get("shown", Shown.WAITING)
    try:
        return Shown(text)
    except ValueError:
        raise ParseError(f"shown: choose one of {', '.join(Shown)}.") from None
