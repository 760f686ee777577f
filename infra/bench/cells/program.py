"""A server of one command, in a separate session, and the packages of clients."""

from __future__ import annotations

import contextlib
import importlib
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import ModuleType

from ..rivals import NotInstalled
from ..rivals.postgres import Cluster, find_programs
from ..rivals.servers import wait_for_port

PACKAGES = Path(__file__).resolve().parents[3] / ".peers"
"""Folder of `make peers`."""


def package(name: str) -> ModuleType:
    """Imports a client's package. Raises NotInstalled."""
    if str(PACKAGES) not in sys.path:
        sys.path.append(str(PACKAGES))
    try:
        return importlib.import_module(name)
    except ImportError as missing:
        raise NotInstalled(f"the Python package {name} (make peers)") from missing


def find(name: str, debian: str) -> str:
    """Returns the path of a server's program. Raises NotInstalled."""
    found = shutil.which(name, path=f"{os.environ.get('PATH', '')}:/usr/sbin:/usr/lib/rabbitmq/bin")
    if found is None:
        raise NotInstalled(f"{name} (Debian: {debian})")
    return found


def durable_cluster(folder: Path) -> Cluster:
    """Returns a PostgreSQL that answers a commit when it is on disk. Raises NotInstalled."""
    programs = find_programs()
    if programs is None:
        raise NotInstalled("PostgreSQL (Debian: postgresql)")
    return Cluster(programs, folder, durable=True)


class Program:
    """A server of one command."""

    def __init__(
        self,
        command: Sequence[str],
        port: int,
        log: Path,
        *,
        environment: Mapping[str, str] | None = None,
        answers: Callable[[], None] | None = None,
    ) -> None:
        """answers: returns when the server answers; None waits until it listens."""
        self._command, self.port, self._log = list(command), port, log
        self._environment = {**os.environ, **(environment or {})}
        self._answers = answers or (lambda: wait_for_port(("127.0.0.1", port)))
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Starts it, and returns when it answers."""
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                self._command,
                stdout=log,
                stderr=log,
                stdin=subprocess.DEVNULL,
                env=self._environment,
                start_new_session=True,
            )
        self._answers()

    def kill(self) -> None:
        """Kills the processes of its session by SIGKILL."""
        if self._process is not None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()

    def alive(self) -> bool:
        """Returns False if its first process ended."""
        return self._process is not None and self._process.poll() is None
