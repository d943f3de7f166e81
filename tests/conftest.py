"""What every test can ask for. The database itself is `tests/plugin_database.py`."""

from __future__ import annotations

# Named here because a conftest's fixture wins over one that a plugin (pytest-django) defines under the same name.
from tests.broker_driver import rabbitmq, valkey, valkey_server
from tests.notice_receivers import mail_server, receiver
from tests.plugin_database import django_db_setup
from tests.rig import rig
from tests.sandbox_driver import sandbox, sandbox_process
from tests.sql_driver import shop, shop_database
from tests.time_driver import time_machine
from tests.web_driver import web_server

__all__ = [
    "django_db_setup",
    "mail_server",
    "rabbitmq",
    "receiver",
    "rig",
    "sandbox",
    "sandbox_process",
    "shop",
    "shop_database",
    "time_machine",
    "valkey",
    "valkey_server",
    "web_server",
]
