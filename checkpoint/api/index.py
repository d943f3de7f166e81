"""The first address: where everything else is, and who the caller is."""

from __future__ import annotations

from drf_spectacular.utils import OpenApiResponse, extend_schema
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.reverse import reverse

from checkpoint.api.schema import PROBLEMS
from checkpoint.api.view import ApiView, caller
from checkpoint.errors import NotFound
from checkpoint.models import ApiToken
from checkpoint.permissions import teams_of

_ADDRESSES = ("workflows", "tools", "events", "audit", "openapi")


class Index(ApiView):
    """A token is good for at least this."""

    @extend_schema(
        operation_id="index",
        responses={200: OpenApiResponse({"type": "object", "additionalProperties": True}), **PROBLEMS},
    )
    def get(self, request: Request) -> Response:
        """The account, its teams, the token's scopes and end, and the addresses of the lists."""
        token = request.auth
        assert isinstance(token, ApiToken)  # HasScope lets nobody in without one
        return Response(
            {
                "account": caller(request).get_username(),
                "teams": list(teams_of(caller(request)).order_by("slug").values_list("slug", flat=True)),
                "scopes": token.scopes,
                "token_expires_at": token.expires_at,
                "addresses": {name: reverse(f"api:{name}", request=request) for name in _ADDRESSES},
            }
        )


class NoSuchAddress(ApiView):
    """Every other address under /api/."""

    authentication_classes = ()
    permission_classes = ()
    schema = None  # not an operation

    def initial(self, request: Request, *args: object, **kwargs: object) -> None:
        """Whatever the method."""
        raise NotFound("There is nothing at this address; /api/v1/openapi.json has all addresses.")
