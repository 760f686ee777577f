"""Processes of `cirrusmq`, forked from one that has imported the service already.

Importing takes most of a short command's time, and of the start of a service. The installed program
itself is run by `tests/local/test_stack.py` and by the tests that name `tests.stack.COMMAND`.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from multiprocessing.connection import Connection
from pathlib import Path

_CONTEXT = multiprocessing.get_context("forkserver")
_CONTEXT.set_forkserver_preload(["tests.preloaded"])


class Forked:
    """A process of `cirrusmq` with the names of subprocess.Popen; `stdout` is a pipe's end."""

    def __init__(
        self,
        arguments: Sequence[str],
        *,
        env: Mapping[str, str],
        stderr: Path,
        stdin: str = os.devnull,
        folder: Path | None = None,
    ) -> None:
        """Start it in `folder`; `stdin` and `stderr` are paths of files that exist."""
        self.args = ["cirrusmq", *arguments]
        reader, writer = _CONTEXT.Pipe(duplex=False)
        with reader, writer:
            given = (self.args, dict(env), folder or Path.cwd(), stdin, writer, stderr)
            self._process = _CONTEXT.Process(target=_main, args=given)
            self._process.start()
            self.stdout = open(os.dup(reader.fileno()), encoding="utf-8")  # noqa: SIM115 - its user closes it
        assert self._process.pid is not None
        self.pid = self._process.pid

    @property
    def returncode(self) -> int | None:
        """Its exit code, or less than 0: the signal that ended it. None while it runs."""
        return self._process.exitcode

    def poll(self) -> int | None:
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """Its exit code at its end; subprocess.TimeoutExpired after so many seconds."""
        self._process.join(timeout)
        code = self._process.exitcode
        if code is None:
            assert timeout is not None
            raise subprocess.TimeoutExpired(self.args, timeout)
        return code

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


def _main(
    arguments: list[str],
    env: Mapping[str, str],
    folder: Path,
    stdin: str,
    stdout: Connection,
    stderr: Path,
) -> None:
    from cirrusmq_local.commands.cli import main

    os.dup2(os.open(stdin, os.O_RDWR), 0)
    os.dup2(stdout.fileno(), 1)
    os.dup2(os.open(stderr, os.O_WRONLY | os.O_APPEND), 2)
    stdout.close()
    sys.stdin = open(0, encoding="utf-8", closefd=False)  # noqa: SIM115
    sys.stdout, sys.stderr = (open(n, "w", encoding="utf-8", closefd=False) for n in (1, 2))  # noqa: SIM115
    os.environ.clear()
    os.environ.update(env)
    os.chdir(folder)
    sys.argv = arguments
    main()
