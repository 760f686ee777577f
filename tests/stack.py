"""`cirrusmq up` as its users start it: a process, its URL and key, and its end."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
from tests.forked import Forked

COMMAND = Path(sys.executable).with_name("cirrusmq")
START_SECONDS = 60
END_SECONDS = 120
"""Its own limit is 15 (`commands/up.py`); a machine whose disk is busy adds to it."""
ENVIRONMENTS = os.environ.get("STACK_ENVIRONMENTS", "shared")
"""The layout of a stack for which a test names none: that of users. A change holds at once there.

In the layout of the cloud callers wait for seconds, until each function has seen it.
"""


class Stack:
    """A running service on the data in `folder`, on a free port unless `arguments` name one."""

    def __init__(self, folder: Path, *arguments: str, installed: bool = False) -> None:
        """`installed`: run the installed program, which imports everything by itself."""
        self.folder = folder
        # A full pipe would stop it one day.
        self._told = tempfile.NamedTemporaryFile("w+")  # noqa: SIM115 - closed in clean_up
        chosen = ["--data", str(folder), *arguments]
        for option, value in (("--port", "0"), ("--environments", ENVIRONMENTS)):
            if option not in arguments:
                chosen += [option, value]
        self.process = self._run_installed(chosen) if installed else self._fork(chosen)
        self._clients: list[httpx.Client] = []
        assert self.process.stdout is not None
        impatience = threading.Timer(START_SECONDS, self.process.kill)
        impatience.start()
        self.ready = self.process.stdout.readline()
        """Its first line; empty if it ended instead."""
        impatience.cancel()

    def _fork(self, arguments: list[str]) -> Forked:
        return Forked(["up", *arguments], env=environment(), stderr=Path(self._told.name))

    def _run_installed(self, arguments: list[str]) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [COMMAND, "up", *arguments],
            stdout=subprocess.PIPE,
            stderr=self._told,
            text=True,
            env=environment(),
        )

    @property
    def url(self) -> str:
        """The URL that it answers at."""
        assert self.ready.startswith("ready "), "the service did not start"
        return self.ready.removeprefix("ready ").strip()

    def connection(self) -> dict[str, Any]:
        """The content of `connection.json`, which it writes for clients."""
        held: dict[str, Any] = json.loads((self.folder / "connection.json").read_text())
        return held

    def client(self) -> httpx.Client:
        """A client with its key, closed at the end."""
        held = self.connection()
        key = f"Bearer {held['access_key_id']}:{held['secret']}"
        made = httpx.Client(
            base_url=self.url,
            headers={"authorization": key},
            trust_env=False,
            timeout=30,
            verify=False,  # it is HTTP: certificates would be read for nothing
        )
        self._clients.append(made)
        return made

    def errors(self) -> str:
        """Its lines on standard error so far."""
        self._told.seek(0)
        return self._told.read()

    def end(self, number: int = signal.SIGTERM) -> tuple[int, str, str]:
        """Exit code, the output after `ready`, and standard error."""
        self.process.send_signal(number)
        try:
            code = self.process.wait(END_SECONDS)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"the service did not end: {self._where_it_is()}") from None
        assert self.process.stdout is not None
        return code, self.process.stdout.read(), self.errors()

    def _where_it_is(self) -> str:
        """The state of its process, and where each of its threads is; it is ended by this."""
        status = Path(f"/proc/{self.process.pid}/status")  # Linux alone has it
        lines = status.read_text().splitlines() if status.exists() else []
        states = [line for line in lines if line.startswith("State")]
        self.process.send_signal(signal.SIGABRT)  # faulthandler prints all threads
        with contextlib.suppress(subprocess.TimeoutExpired):  # in a wait of the kernel's
            self.process.wait(10)
        return "\n".join([*states, self.errors()])

    def clean_up(self) -> None:
        """Leave nothing behind, in any state of the process."""
        for client in self._clients:
            client.close()
        self.process.kill()
        self.process.wait()
        assert self.process.stdout is not None
        self.process.stdout.close()
        self._told.close()


Start = Callable[..., Stack]
"""Starts it on a test's folder, again on the same data: `start("--time-scale", "10")`."""


def environment() -> dict[str, str]:
    """This process's, without what would point at another service."""
    return {name: held for name, held in os.environ.items() if "CIRRUSMQ" not in name}
