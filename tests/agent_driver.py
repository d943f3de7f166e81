"""Speaks the verbs of an agent that carries out steps itself, over the API."""

from __future__ import annotations

from typing import Any

from django.contrib.auth.models import User

from checkpoint.models import Step
from tests import factories
from tests.api_driver import Api, token_of

TOOL: dict[str, Any] = {
    "name": "crm.update",
    "summary": "Changes a customer's record.",
    "schema": {
        "type": "object",
        "properties": {"customer": {"type": "string"}, "cents": {"type": "integer", "default": 1}},
        "required": ["customer"],
    },
    "recovery": "opaque",
    "reversibility": "compensable",
    "deadline": 60,
    "settle": 1,
    "where_to_look": "Open the customer's page.",
}


def bot(name: str = "bot") -> User:
    """An agent's account in the default team."""
    return factories.person(name, groups=["Agent"], teams=[factories.team("Default")])


def register(**changes: Any) -> str:
    """Puts the contract in force for the default team; returns the name by which plans call it."""
    operator = User.objects.filter(username="olga").first()
    operator = operator or factories.person("olga", groups=["Operator"], teams=[factories.team("Default")])
    answered = Api.of(operator).post("tools/", {**TOOL, **changes})
    assert answered.status_code == 201, answered.json()
    return str(answered.json()["name"])


class Agent:
    """A program of the account, with one workflow."""

    def __init__(self, account: User | None = None) -> None:
        self.account = account or bot()
        self.api = Api(token_of(self.account, days=30))

    def submit(self, *names: str, **members: Any) -> str:
        """Submits a plan of such steps, registered before; returns the workflow's id."""
        steps = [{"name": name, "tool": "default:crm.update", "arguments": {"customer": name}} for name in names]
        answered = self.api.post("workflows/", {"goal": "Keep the records right.", "steps": steps, **members})
        assert answered.status_code == 201, answered.json()
        return str(answered.json()["id"])

    def begin(self, name: str = "a", *, key: str | None = None, **body: Any) -> Any:
        """Begins the newest step of that name."""
        return self.api.post(f"steps/{self.step(name).pk}/begin/", body, key=key)

    def begun(self, name: str = "a", **body: Any) -> dict[str, Any]:
        """Begins it; there is nothing in the way."""
        answered = self.begin(name, **body)
        assert answered.status_code == 201, answered.json()
        found: dict[str, Any] = answered.json()
        return found

    def record(self, fence: int, outcome: str = "receipt", *, name: str = "a", **body: Any) -> Any:
        """Says how it went."""
        sent = {"fence": fence, "outcome": outcome, **body}
        if outcome != "receipt":
            sent.setdefault("message", "the record was locked")
        return self.api.post(f"steps/{self.step(name).pk}/record/", sent)

    def hold(self, fence: int, *, seconds: float = 30, name: str = "a") -> Any:
        """The heartbeat."""
        return self.api.put(f"steps/{self.step(name).pk}/lease/", {"fence": fence, "lease_seconds": seconds})

    def step(self, name: str = "a") -> Step:
        """The step as it is now."""
        return Step.objects.filter(name=name).latest("id")
