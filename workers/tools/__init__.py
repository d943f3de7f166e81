"""The tools that come with the product. A tool of your own lives in your own app or package: docs/writing-a-tool.md."""

from __future__ import annotations

from workers.registry import Tool
from workers.tools.command_run import CommandRun
from workers.tools.email_send import EmailSend
from workers.tools.file_append import FileAppend
from workers.tools.file_delete import FileDelete
from workers.tools.file_write import FileWrite
from workers.tools.http_request import HttpRequest
from workers.tools.human_task import HumanTask
from workers.tools.object_delete import ObjectDelete
from workers.tools.object_put import ObjectPut
from workers.tools.outbox_publish import OutboxPublish
from workers.tools.sql_execute import SqlExecute
from workers.tools.wait_until import WaitUntil

TOOLS: list[Tool] = [
    CommandRun(),
    EmailSend(),
    FileAppend(),
    FileDelete(),
    FileWrite(),
    HttpRequest(),
    HumanTask(),
    ObjectDelete(),
    ObjectPut(),
    OutboxPublish(),
    SqlExecute(),
    WaitUntil(),
]
