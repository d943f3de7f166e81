"""People who are to be told, and what they are told of, by the product's own verbs."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from django.contrib.auth.models import User

from approvals.models import Notice, NoticeChannel
from approvals.notifying.notice_rules import ChannelFormat, NoticeKind
from checkpoint.config.environment import BASE_DIR
from checkpoint.contracts import Contract, Variant
from checkpoint.models import Case, Team, Workflow
from checkpoint.outcomes import OutcomeUnknown, Receipt
from checkpoint.planning.plan_steps import PublishedTool
from checkpoint.tool_versions import Declaration, newest_tools
from checkpoint.workflows import submit
from tests import factories
from tests.journal_driver import KEYED, OPAQUE, JournalDriver, effect
from tests.notice_receivers import Receiver
from tests.submissions import ACTOR, INVOICE_SCHEMA, document, plan_of, published

SENDER_SECONDS = 60


def channel(receiver: Receiver, format: ChannelFormat = ChannelFormat.SLACK, **fields: Any) -> NoticeChannel:
    """A channel of all teams that leads to the receiver and takes questions."""
    secret_name = "TEAM_HOOK" if format is ChannelFormat.STANDARD else ""
    return NoticeChannel.objects.create(
        **{
            "name": f"channel {NoticeChannel.objects.count() + 1}",
            "format": format.value,
            "url": f"http://{receiver.host}/hook",
            "secret_name": secret_name,
            "kinds": [NoticeKind.ASKED.value],
            **fields,
        }
    )


def default_team() -> Team:
    """The team that `requested` submits for."""
    return Team.objects.get(slug="default")


def person(name: str, *, groups: tuple[str, ...] = (), team: Team | None = None, address: bool = True) -> User:
    """Somebody in the default team, with an e-mail address."""
    made = factories.person(name, groups=groups, teams=[team or default_team()])
    made.email = f"{name}@example.com" if address else ""
    made.save(update_fields=["email"])
    return made


def approver(name: str) -> User:
    """Somebody who may decide in the default team."""
    return person(name, groups=("Approver",))


def requested(by: User | None = None, *, contract: Contract = OPAQUE, **members: Any) -> Workflow:
    """A workflow of one step, submitted by a person, or by the machine's operator."""
    tools = _tools(contract)
    plan = plan_of(document(effect(), **members), tools)
    return submit(plan, team=default_team(), actor=ACTOR, user=by)


def _tools(contract: Contract) -> dict[str, PublishedTool]:
    published(Declaration("effect", "1", "An effect.", INVOICE_SCHEMA, (Variant("only", contract),)))
    return newest_tools()


def asked(by: User | None = None, **members: Any) -> Case:
    """A case that the engine opened: an answer never came, and the tool cannot be asked."""
    workflow, worker = requested(by, **members), JournalDriver()
    worker.report(worker.claim(), OutcomeUnknown("the connection broke"))
    return Case.objects.get(workflow=workflow)


def completed(by: User | None = None) -> Workflow:
    """A workflow that ran to its end."""
    workflow, worker = requested(by, contract=KEYED), JournalDriver()
    worker.report(worker.claim(), Receipt(operation_id="op_1"))
    workflow.refresh_from_db()
    return workflow


def told(kind: NoticeKind | None = None) -> dict[str, str]:
    """The state of each notice, of one kind or of all, by the recipient's name."""
    found = Notice.objects.select_related("person", "channel")
    chosen = found.filter(kind=kind) if kind else found
    return {notice.person.username if notice.person else str(notice.channel): notice.state for notice in chosen}


def sender_process(folder: Path, port: int, **env: str) -> subprocess.Popen[bytes]:
    """A sender of its own, which runs one round."""
    code = "import django; django.setup(); from workers.notices import sender; sender.run_round()"
    ours = {"EMAIL_HOST": "127.0.0.1", "EMAIL_PORT": str(port), "DJANGO_SETTINGS_MODULE": "checkpoint.config.settings"}
    with (folder / "sender.log").open("ab") as log:
        return subprocess.Popen(
            [sys.executable, "-c", code], cwd=BASE_DIR, env={**os.environ, **ours, **env}, stdout=log, stderr=log
        )
