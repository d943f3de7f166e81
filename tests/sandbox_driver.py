"""Runs the real sandbox provider for tests, and speaks its switch and its ledger.

Fixtures: `sandbox` is one process for the whole session, with every fault cleared before each test. A test that kills
the sandbox starts its own with `SandboxProcess`.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from checkpoint.config.environment import BASE_DIR

WAIT_SECONDS = 15.0


class SandboxProcess:
    """One sandbox process on a free port, with a ledger file of its own."""

    def __init__(self, ledger: Path) -> None:
        self.ledger_file = ledger
        self.port = self.mail_port = 0
        self.start()

    def start(self) -> None:
        """Starts it: on a free port the first time, afterwards on the same one and with the same ledger."""
        ours = {
            "CHECKPOINT_SANDBOX_PORT": str(self.port),
            "CHECKPOINT_SANDBOX_MAIL_PORT": str(self.mail_port),
            "CHECKPOINT_SANDBOX_LEDGER": str(self.ledger_file),
        }
        self.process = subprocess.Popen(
            [sys.executable, "-m", "workers.sandbox"],
            cwd=BASE_DIR,
            env={**os.environ, **ours},
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self.process.stdout
        line = self.process.stdout.readline()
        said = re.fullmatch(r"sandbox takes mail on port (\d+) and listens on (http://127\.0\.0\.1:(\d+))\n", line)
        assert said, f"the sandbox did not start: {line!r}"
        self.mail_port, self.url, self.port = int(said[1]), said[2], int(said[3])
        self._http = httpx.Client(base_url=self.url, timeout=WAIT_SECONDS, trust_env=False)

    def kill(self) -> None:
        """SIGKILL: nothing is tidied up."""
        self._end(signal.SIGKILL)

    def stop(self) -> None:
        """SIGTERM."""
        self._end(signal.SIGTERM)

    def _end(self, number: signal.Signals) -> None:
        self._http.close()
        self.process.send_signal(number)
        self.process.wait(WAIT_SECONDS)
        assert self.process.stdout
        self.process.stdout.close()

    def fault(self, fault: str, path: str = "/", **members: Any) -> None:
        """Sets a fault for the next request (or `times` requests; None: until cleared) to `path` and below."""
        self._turn({"fault": fault, "path": path, **members})

    def clear(self) -> None:
        """Takes all faults away, shows hidden effects, lets held requests go."""
        self._turn({"clear": True})

    def release(self) -> None:
        """Lets every held request go."""
        self._turn({"release": "all"})

    def forget_keys(self) -> None:
        """Plays the end of the provider's key lifetime."""
        self._turn({"forget_keys": True})

    def held(self) -> list[dict[str, Any]]:
        """The requests that are kept open now."""
        held: list[dict[str, Any]] = self._http.get("/switch").json()["held"]
        return held

    def wait_held(self, count: int = 1) -> list[dict[str, Any]]:
        """Waits until so many requests are kept open."""
        return wait_for(lambda: held if len(held := self.held()) >= count else None)

    def ledger(self) -> dict[str, Any]:
        """Everything that happened, hidden or not: `effects`, `counts`, `by_key`, `by_reference`."""
        ledger: dict[str, Any] = self._http.get("/ledger").json()
        return ledger

    def count(self, kind: str, *, key: str | None = None, reference: str | None = None) -> int:
        """How many effects of a kind there are: in all, of a key, or of a reference."""
        ledger = self.ledger()
        if key is None and reference is None:
            return int(ledger["counts"].get(kind, 0))
        counted = ledger["by_key"] if key is not None else ledger["by_reference"]
        return int(counted.get(kind, {}).get(key if key is not None else reference, 0))

    def duplicates(self) -> dict[str, dict[str, int]]:
        """Per kind, every key that has more than one effect."""
        by_key = self.ledger()["by_key"]
        doubled = {kind: {key: n for key, n in keys.items() if n > 1} for kind, keys in by_key.items()}
        return {kind: keys for kind, keys in doubled.items() if keys}

    def providers_toml(self) -> str:
        """`deploy/providers.toml` with this process's port in place of the default one."""
        shipped = (BASE_DIR / "deploy" / "providers.toml").read_text(encoding="utf-8")
        return shipped.replace("http://127.0.0.1:7180", self.url)

    def _turn(self, wanted: dict[str, Any]) -> None:
        answer = self._http.post("/switch", json=wanted)
        assert answer.status_code == 200, answer.text


def wait_for[T](condition: Callable[[], T | None], seconds: float = WAIT_SECONDS) -> T:
    """Waits until `condition` answers something true, and returns it; fails after `seconds`."""
    ends = time.monotonic() + seconds
    while not (answer := condition()):
        assert time.monotonic() < ends, "the condition did not come true in time"
        time.sleep(0.005)
    return answer


@pytest.fixture(scope="session")
def sandbox_process(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SandboxProcess]:
    """One sandbox for the session."""
    process = SandboxProcess(tmp_path_factory.mktemp("sandbox") / "ledger.jsonl")
    yield process
    process.stop()


@pytest.fixture
def sandbox(sandbox_process: SandboxProcess) -> Iterator[SandboxProcess]:
    """The session's sandbox with nothing set; its ledger goes on, so tests use keys of their own."""
    sandbox_process.clear()
    yield sandbox_process
    sandbox_process.clear()
