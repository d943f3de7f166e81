"""The Celery application. Its messages are only doorbells: "there may be work"; the database says whether there is.

So nothing here tries to make delivery reliable: messages are acknowledged early, results are not kept, and no message
carries a time to wait for. A sweep every second finds whatever a lost doorbell left behind.
"""

from __future__ import annotations

import os
import warnings
from typing import Any

from celery import Celery
from celery.signals import worker_shutting_down
from django.conf import settings

from workers import draining

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "checkpoint.config.settings")

QUEUE = "checkpoint"
SWEEP_SECONDS = 1.0
ANCHOR_SECONDS = settings.CHECKPOINT_ANCHOR_MINUTES * 60
NOTICE_SECONDS = 2.0
COLLECT_SECONDS = 600.0
VISIBILITY_SECONDS = 60
ON_POSTGRES = "pgmq://localhost"


def broker(url: str, database_url: str) -> tuple[str, dict[str, Any]]:
    """The broker's address and its transport options; without an address, a queue in the database itself."""
    if not url or url.startswith("pgmq"):
        return ON_POSTGRES, {
            "conn_string": url.replace("pgmq", "postgresql", 1) or database_url,
            "init_extension": False,
            "visibility_timeout": VISIBILITY_SECONDS,
            "wait_time_seconds": 1,
            "poll_interval_ms": 20,
            "polling_interval": 0.02,
            "pool_size": 4,
        }
    if url.startswith(("redis", "sentinel")):
        # By default a killed worker's messages come back much later than the visibility timeout says.
        options = {"visibility_timeout": VISIBILITY_SECONDS, "unacked_restore_interval": 2}
        return url, {**options, "unacked_restore_throttle": 1}
    return url, {}


# Celery warns root about pickle, which no message here may use.
warnings.filterwarnings("ignore", "You're running the worker with superuser privileges")

_broker_url, _transport_options = broker(settings.BROKER_URL, settings.DATABASE_URL)

app = Celery("checkpoint")
app.conf.update(
    broker_url=_broker_url,
    broker_transport_options=_transport_options,
    broker_connection_retry_on_startup=True,
    broker_connection_max_retries=None,
    result_backend=None,
    task_ignore_result=True,
    task_acks_late=False,
    task_default_queue=QUEUE,
    task_publish_retry_policy={"max_retries": 1, "interval_start": 0.1},
    worker_prefetch_multiplier=2,
    worker_enable_remote_control=False,
    broker_heartbeat=0,  # the one process of a worker is busy with steps for as long as there are any
    worker_send_task_events=False,
    worker_hijack_root_logger=False,
    timezone="UTC",
    beat_schedule={
        "sweep": {"task": "workers.tasks.sweep", "schedule": SWEEP_SECONDS, "options": {"expires": SWEEP_SECONDS}},
        "anchor_audit": {
            "task": "workers.tasks.anchor_audit",
            "schedule": ANCHOR_SECONDS,
            "options": {"expires": ANCHOR_SECONDS},
        },
        "send_notices": {
            "task": "workers.tasks.send_notices",
            "schedule": NOTICE_SECONDS,
            "options": {"expires": NOTICE_SECONDS},
        },
        "collect_orphans": {
            "task": "workers.tasks.collect_orphans",
            "schedule": COLLECT_SECONDS,
            "options": {"expires": COLLECT_SECONDS},
        },
    },
)
app.autodiscover_tasks()
worker_shutting_down.connect(draining.begin)
