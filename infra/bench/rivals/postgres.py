"""Runs a PostgreSQL from the system's package for a measurement or test, then removes its data."""

from __future__ import annotations

import contextlib
import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

PACKAGES = Path("/usr/lib/postgresql")
STOP_SECONDS = 20


def find_programs() -> Path | None:
    """Returns the folder of `initdb` and `pg_ctl`, or None if PostgreSQL is not installed."""
    packaged = sorted(PACKAGES.glob("*/bin"), key=lambda path: path.parent.name)
    for folder in reversed(packaged):
        if (folder / "initdb").exists() and (folder / "pg_ctl").exists():
            return folder
    found = shutil.which("initdb")
    return Path(found).resolve().parent if found else None


class Cluster:
    """A cluster in an empty folder, on a port that it keeps over a restart."""

    def __init__(self, programs: Path, folder: Path, *, durable: bool) -> None:
        """durable: commits survive a loss of power."""
        self._programs, self._folder = programs, folder
        self._user = _unprivileged()
        if self._user is not None:
            account = pwd.getpwnam(self._user)
            os.chown(folder, account.pw_uid, account.pw_gid)
        with socket.create_server(("127.0.0.1", 0)) as listening:
            self.port = int(listening.getsockname()[1])
        self.url = f"postgresql://test@127.0.0.1:{self.port}/postgres"
        fsync = "on" if durable else "off"
        self._options = f"-c listen_addresses=127.0.0.1 -p {self.port} -c fsync={fsync}"
        self._options += " -c unix_socket_directories="  # whose lock file would outlive a kill
        self._run("initdb", "-D", self._data, "-U", "test", "-A", "trust", "--no-sync")

    @property
    def _data(self) -> Path:
        return self._folder / "data"

    def start(self) -> None:
        """Starts it, and recovers what a crash left."""
        log = self._folder / "log"
        self._run("pg_ctl", "-D", self._data, "-o", self._options, "-l", log, "-w", "start")

    def kill(self) -> None:
        """Ends its processes at once, without a checkpoint: the next start is a recovery."""
        try:
            stop = ("-m", "immediate", "-w", "-t", STOP_SECONDS, "stop")
            self._run("pg_ctl", "-D", self._data, *stop)
        except subprocess.CalledProcessError:
            self._kill_processes()

    def _kill_processes(self) -> None:
        """Does what a stop in time would have done, and lets the next start find no process."""
        lock = self._data / "postmaster.pid"
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            first = int(lock.read_text().split()[0])
            children = Path(f"/proc/{first}/task/{first}/children").read_text().split()
            for process in (first, *map(int, children)):
                os.kill(process, signal.SIGKILL)
        lock.unlink(missing_ok=True)

    def alive(self) -> bool:
        """Returns False if its first process ended."""
        status = [str(self._programs / "pg_ctl"), "-D", str(self._data), "status"]
        return not subprocess.run(status, user=self._user, capture_output=True).returncode

    def _run(self, program: str, *arguments: object) -> None:
        subprocess.run(
            [self._programs / program, *map(str, arguments)],
            user=self._user,
            cwd=self._folder,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            check=True,
            timeout=60,
        )


@contextlib.contextmanager
def run_postgres(programs: Path, *, durable: bool) -> Iterator[str]:
    """Yields the URL of a cluster on a free port. `durable`: commits survive a loss of power."""
    folder = Path(tempfile.mkdtemp(prefix="cirrusmq-postgres-"))
    try:
        cluster = Cluster(programs, folder, durable=durable)
        cluster.start()
        try:
            yield cluster.url
        finally:
            cluster.kill()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _unprivileged() -> str | None:
    """Returns a user to run it if we are root, which PostgreSQL refuses, else None."""
    if os.geteuid() != 0:
        return None
    try:
        return pwd.getpwnam("postgres").pw_name
    except KeyError:
        return "nobody"
