"""`make up`: one command that brings everything up, and takes it down in the right order.

Own code rather than Honcho: that stops everything when one process ends, signals whole process groups (which kills a
Celery worker's children in the middle of a step), and knows no order.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Mapping
from pathlib import Path
from types import FrameType

from checkpoint.config import preflight
from checkpoint.config.embedded_postgres import APP, Server
from checkpoint.config.environment import BASE_DIR, HOME
from checkpoint.config.postgres_binaries import PostgresUnavailable
from checkpoint.config.preflight import CannotStart
from checkpoint.config.processes import Output, Process, read_procfile, stop
from checkpoint.config.sandbox_address import USUAL_MAIL_PORT, USUAL_PORT, adapted

POLL_SECONDS = 0.1
WEB_SECONDS = 60.0
STOPPED_LAST = {"sandbox"}
# Operator's lists that name the sandbox.
LISTS = {"CHECKPOINT_HTTP_PROVIDERS": "providers.toml", "CHECKPOINT_MAIL_ACCOUNTS": "mail-accounts.toml"}


class Stopped(Exception):
    """Somebody asked to stop while things were still being set up."""


class Supervisor:
    """Everything that one `make up` runs. Use once: `run()`."""

    def __init__(self, environ: Mapping[str, str], output: Output) -> None:
        self.port = preflight.port_setting(environ, "CHECKPOINT_PORT", 8000)
        self.sandbox_port = preflight.port_setting(environ, "CHECKPOINT_SANDBOX_PORT", USUAL_PORT)
        self.mail_port = preflight.port_setting(environ, "CHECKPOINT_SANDBOX_MAIL_PORT", USUAL_MAIL_PORT)
        self.env = {
            **environ,
            "PATH": os.pathsep.join([str(Path(sys.executable).parent), environ.get("PATH", os.defpath)]),
            "PYTHONUNBUFFERED": "1",
            "CHECKPOINT_HOME": str(HOME),
            "CHECKPOINT_PORT": str(self.port),
            "CHECKPOINT_SANDBOX_PORT": str(self.sandbox_port),
            "CHECKPOINT_SANDBOX_MAIL_PORT": str(self.mail_port),
        }
        self.output = output
        self.server: Server | None = None
        self.processes: list[Process] = []
        self.asked_to_stop = threading.Event()

    def run(self) -> None:
        """Sets everything up, watches it until somebody asks to stop, and takes it down.

        Raises:
            CannotStart: something stands in the way; nothing is left running.
        """
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, self._ask_to_stop)
        with preflight.only_one_per_folder(HOME):
            try:
                self._look_first()
                self._set_up()
                self._watch()
            except Stopped:
                pass
            finally:
                self._take_down()

    def _ask_to_stop(self, number: int, frame: FrameType | None) -> None:
        self.asked_to_stop.set()

    def _look_first(self) -> None:
        host = self.env.get("CHECKPOINT_HOST") or "127.0.0.1"
        if self.port == self.sandbox_port:
            raise CannotStart(
                f"CHECKPOINT_PORT and CHECKPOINT_SANDBOX_PORT are both {self.port}: set one of them to another port"
            )
        preflight.require_free_port(self.port, variable="CHECKPOINT_PORT", host=host)
        preflight.require_free_port(self.sandbox_port, variable="CHECKPOINT_SANDBOX_PORT")
        preflight.require_free_port(self.mail_port, variable="CHECKPOINT_SANDBOX_MAIL_PORT")
        if self.env.get("DATABASE_URL"):
            preflight.check_external_database(self.env)

    def _set_up(self) -> None:
        if not self.env.get("DATABASE_URL"):
            self._start_database()
        for variable, name in LISTS.items():
            if not self.env.get(variable):
                self.env[variable] = str(adapted(BASE_DIR / "deploy" / name, HOME))
        self._manage("migrate_database", CHECKPOINT_AS_OWNER="1")
        for name, command in read_procfile(BASE_DIR / "Procfile").items():
            process = Process(name, command, self.env, self.output)
            self.processes.append(process)
            process.start()
        self._wait_for_web()
        self._manage("create_demo_people")
        self._manage("submit_demo_workflows")
        self.output.say(f"\nCheckpoint is running: open {self.address}   (Ctrl-C stops everything)\n")

    @property
    def address(self) -> str:
        """Where the console is."""
        return f"http://127.0.0.1:{self.port}/"

    def _start_database(self) -> None:
        """Also tells commands typed elsewhere, by a file that only this user may read."""
        self.server = Server(HOME / "postgres")
        addresses = self.server.start()
        found = {
            "DATABASE_URL": addresses.app,
            "DATABASE_OWNER_URL": addresses.owner,
            "DATABASE_DIRECT_URL": addresses.app,
            "CHECKPOINT_APP_ROLE": APP,
            "CHECKPOINT_SANDBOX_PORT": str(self.sandbox_port),
            "CHECKPOINT_SANDBOX_MAIL_PORT": str(self.mail_port),
        }
        self.env |= found
        file = HOME / "env"
        file.touch(mode=0o600)
        file.write_text("".join(f"{name}={value}\n" for name, value in found.items()), encoding="utf-8")

    def _manage(self, command: str, **extra: str) -> None:
        """Runs one management command to its end, in its own session: Ctrl-C reaches only the supervisor."""
        arguments = [sys.executable, str(BASE_DIR / "manage.py"), command]
        child = subprocess.Popen(arguments, env={**self.env, **extra}, start_new_session=True)
        while child.poll() is None:
            if self.asked_to_stop.wait(POLL_SECONDS):
                child.terminate()
                child.wait()
                raise Stopped
        if child.returncode != 0:
            raise CannotStart(f"`manage.py {command}` failed: see what it said above")

    def _wait_for_web(self) -> None:
        deadline = time.monotonic() + WEB_SECONDS
        while not _answers(self.address):
            self._tick()
            if time.monotonic() > deadline:
                raise CannotStart(f"The console does not answer at {self.address}: see what `web` said above")

    def _watch(self) -> None:
        while True:
            self._tick()

    def _tick(self) -> None:
        """Starts again what has died; then a short pause."""
        if self.server is not None and not self.server.alive():
            self.output.say("died; starting it again", "postgres")
            self.server.start()
        for process in self.processes:
            process.watch()
        if self.asked_to_stop.wait(POLL_SECONDS):
            raise Stopped

    def _take_down(self) -> None:
        """Workers first, so that they can finish; then what they talk to; the database last."""
        if self.processes:
            self.output.say("Stopping; a step that is running gets up to 30 s to finish.")
        stop(process for process in self.processes if process.name not in STOPPED_LAST)
        stop(process for process in self.processes if process.name in STOPPED_LAST)
        if self.server is not None:
            (HOME / "env").unlink(missing_ok=True)
            self.server.stop()
            self.output.say("Stopped; the data is kept.")


def _answers(address: str) -> bool:
    try:
        urllib.request.urlopen(address, timeout=2).close()
    except urllib.error.HTTPError:
        return True
    except OSError:
        return False
    return True


def main() -> int:
    """Runs until stopped. Returns the exit code: 1 with one line when it cannot start."""
    output = Output()
    try:
        Supervisor(os.environ, output).run()
    except (CannotStart, PostgresUnavailable) as error:
        output.say(str(error))
        return 1
    return 0
