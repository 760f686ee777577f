"""A PostgreSQL of a test's own, from the system's package, on a free port of this machine."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import tempfile
from pathlib import Path

PACKAGES = Path("/usr/lib/postgresql")


def find_programs() -> Path | None:
    """The folder of `initdb` and `pg_ctl`; None where PostgreSQL is not installed."""
    packaged = sorted(PACKAGES.glob("*/bin"), key=lambda path: path.parent.name)
    for folder in reversed(packaged):
        if (folder / "initdb").exists() and (folder / "pg_ctl").exists():
            return folder
    found = shutil.which("initdb")
    return Path(found).resolve().parent if found else None


class Postgres:
    """A cluster that runs until `stop`; it refuses to run as root, so then another user does."""

    def __init__(self, programs: Path, port: int) -> None:
        self._programs = programs
        self._user = "postgres" if _exists("postgres") else "nobody"
        self._folder = Path(tempfile.mkdtemp(prefix="cirrusmq-postgres-"))
        if os.geteuid() == 0:
            account = pwd.getpwnam(self._user)
            os.chown(self._folder, account.pw_uid, account.pw_gid)
        data = self._folder / "data"
        self._run("initdb", "-D", data, "-U", "test", "-A", "trust", "--no-sync")
        options = f"-c listen_addresses=127.0.0.1 -p {port} -k {self._folder} -c fsync=off"
        log = self._folder / "log"
        self._run("pg_ctl", "-D", data, "-o", options, "-l", log, "-w", "start")
        self._data = data
        self.url = f"postgresql+psycopg://test@127.0.0.1:{port}/postgres"

    def stop(self) -> None:
        self._run("pg_ctl", "-D", self._data, "-m", "immediate", "-w", "stop")
        shutil.rmtree(self._folder)

    def _run(self, program: str, *arguments: object) -> None:
        subprocess.run(
            [self._programs / program, *map(str, arguments)],
            user=self._user if os.geteuid() == 0 else None,
            cwd=self._folder,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            check=True,
            timeout=60,
        )


def _exists(user: str) -> bool:
    try:
        pwd.getpwnam(user)
    except KeyError:
        return False
    return True
