"""Who calls: the account of the token in the header, and nobody that the body names (S14)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.contrib.auth.models import User
from drf_spectacular.extensions import OpenApiAuthenticationExtension
from rest_framework.authentication import BaseAuthentication, get_authorization_header
from rest_framework.exceptions import AuthenticationFailed
from rest_framework.permissions import BasePermission
from rest_framework.request import Request
from rest_framework.throttling import SimpleRateThrottle

from checkpoint.errors import Forbidden, TokenRefused
from checkpoint.identity import request_rates, tokens
from checkpoint.models import ApiToken

if TYPE_CHECKING:  # that module imports this one, by the settings
    from rest_framework.views import APIView

SCHEME = "Bearer"  # RFC 6750
_NO_TOKEN = "Send a token: “Authorization: Bearer cp_…”. An administrator issues one with `manage.py token issue`."


class BearerToken(BaseAuthentication):
    """RFC 6750: the token in the Authorization header. A cookie counts for nothing, so no other site's form does."""

    def authenticate(self, request: Request) -> tuple[User, ApiToken] | None:
        """The account and its token; None where there is no Authorization header."""
        words = get_authorization_header(request).split()
        if not words:
            return None
        if len(words) != 2 or words[0].lower() != SCHEME.lower().encode():
            raise AuthenticationFailed(_NO_TOKEN)
        try:
            token = tokens.check(words[1].decode("latin-1"))
        except TokenRefused as refusal:
            raise AuthenticationFailed(str(refusal), code=refusal.code) from None
        return token.account, token

    def authenticate_header(self, request: Request) -> str:
        """What a 401 names."""
        return f'{SCHEME} realm="checkpoint"'


class HasScope(BasePermission):
    """The token's scopes have the one that the view names for the method."""

    message = _NO_TOKEN

    def has_permission(self, request: Request, view: APIView) -> bool:
        """False without a token. Raises Forbidden where the scope is missing."""
        token = request.auth
        if not isinstance(token, ApiToken):
            return False
        wanted = _scope_of(view, request.method or "")
        if wanted and wanted not in token.scopes:
            raise Forbidden(f"The token lacks the scope “{wanted}”. Ask an administrator for one that has it.")
        return True


def _scope_of(view: APIView, method: str) -> str:
    scopes: dict[str, str] = getattr(view, "scopes", {})
    return scopes.get("GET" if method == "HEAD" else method, "")


class RateOfToken(SimpleRateThrottle):
    """So many requests a minute for each token, counted for all web processes together."""

    scope = "token"
    _seconds = 0.0

    def allow_request(self, request: Request, view: APIView) -> bool:
        """Whether the request may be carried out; it is counted if so. Who has no token is counted by this process."""
        if not isinstance(request.auth, ApiToken):
            return super().allow_request(request, view)
        most, seconds = self.parse_rate(self.get_rate())
        self._seconds = request_rates.take(request.auth.pk, most=most or 1, seconds=seconds or 1)
        return not self._seconds

    def wait(self) -> float | None:
        """Seconds after which the next request may come."""
        return self._seconds or super().wait()

    def get_cache_key(self, request: Request, view: APIView) -> str:
        """Of those without a token: their address."""
        return self.cache_format % {"scope": self.scope, "ident": self.get_ident(request)}


class _BearerInSchema(OpenApiAuthenticationExtension):  # type: ignore[no-untyped-call]  # the library has no types here
    """Tells OpenAPI about the token."""

    target_class = BearerToken
    name = "token"

    def get_security_definition(self, auto_schema: Any) -> dict[str, str]:
        """As OpenAPI writes it."""
        return {"type": "http", "scheme": "bearer", "bearerFormat": "cp_…"}
