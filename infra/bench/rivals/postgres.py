"""Runs a PostgreSQL from the system's package for a measurement or test, then removes its data."""

from __future__ import annotations

import contextlib
import os
import pwd
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

PACKAGES = Path("/usr/lib/postgresql")


def find_programs() -> Path | None:
    """Returns the folder of `initdb` and `pg_ctl`, or None if PostgreSQL is not installed."""
    packaged = sorted(PACKAGES.glob("*/bin"), key=lambda path: path.parent.name)
    for folder in reversed(packaged):
        if (folder / "initdb").exists() and (folder / "pg_ctl").exists():
            return folder
    found = shutil.which("initdb")
    return Path(found).resolve().parent if found else None


@contextlib.contextmanager
def run_postgres(programs: Path, *, durable: bool) -> Iterator[str]:
    """Yields the URL of a cluster on a free port. `durable`: commits survive a loss of power."""
    user = _unprivileged()
    folder = Path(tempfile.mkdtemp(prefix="cirrusmq-postgres-"))
    if user is not None:
        account = pwd.getpwnam(user)
        os.chown(folder, account.pw_uid, account.pw_gid)

    def run(program: str, *arguments: object) -> None:
        subprocess.run(
            [programs / program, *map(str, arguments)],
            user=user,
            cwd=folder,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            check=True,
            timeout=60,
        )

    data, log = folder / "data", folder / "log"
    try:
        run("initdb", "-D", data, "-U", "test", "-A", "trust", "--no-sync")
        with socket.create_server(("127.0.0.1", 0)) as listening:
            port = listening.getsockname()[1]
        fsync = "on" if durable else "off"
        options = f"-c listen_addresses=127.0.0.1 -p {port} -k {folder} -c fsync={fsync}"
        run("pg_ctl", "-D", data, "-o", options, "-l", log, "-w", "start")
        try:
            yield f"postgresql://test@127.0.0.1:{port}/postgres"
        finally:
            run("pg_ctl", "-D", data, "-m", "immediate", "-w", "stop")
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
