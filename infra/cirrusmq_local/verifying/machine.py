"""A service on this machine that is started for a run, and the faults that it can be given.

It has a guard (`commands.guarded`): if the run is killed, the service ends, too.
"""

from __future__ import annotations

import contextlib
import os
import resource
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from cirrusmq_local.stack.data import owner
from cirrusmq_local.verifying.function import GIVEN
from cirrusmq_local.verifying.journal import Journal, Step

START_SECONDS = 60
STOP_SECONDS, FULL_SECONDS = 3.0, 3.0
COMMAND = (sys.executable, "-m", "cirrusmq_local.commands.guarded")
STARTED = "started"
"""The kind of the step that a service of the run's own is there."""


class Machine:
    """`cirrusmq up` as a process on its own folder; it keeps its ports over a restart."""

    def __init__(
        self,
        folder: Path,
        journal: Journal,
        command: Sequence[str] = COMMAND,
        sleep: Callable[[float], object] = time.sleep,
    ) -> None:
        """sleep: waits while a fault lasts."""
        self.folder, self._journal, self._command = folder, journal, tuple(command)
        self._sleep = sleep
        self._port, self._dialect_port = free_port(), free_port()
        self.process = self._start()

    def _start(self) -> subprocess.Popen[str]:
        kept = {name: held for name, held in os.environ.items() if "CIRRUSMQ" not in name}
        data = ["--data", str(self.folder), "--port", str(self._port)]
        data += ["--dialect-port", str(self._dialect_port), "--function", GIVEN]
        path = self.folder.parent / "service.log"
        with path.open("a") as log:
            process = subprocess.Popen(
                [*self._command, "up", *data],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                env=kept,
                start_new_session=True,
            )
        assert process.stdout is not None
        if not process.stdout.readline().startswith("ready "):
            _end(process)
            last = path.read_text(errors="replace").strip().rpartition("\n")[2]
            raise RuntimeError(f"the service did not start: {last}")
        return process

    @property
    def url(self) -> str:
        """Its URL."""
        return f"http://127.0.0.1:{self._port}"

    def kill(self) -> None:
        """kill -9, and start it again on its data."""
        self.process.kill()
        self._restart()

    def stop(self) -> None:
        """SIGSTOP for some seconds."""
        number = self._journal.note({"kind": "continue", "pid": self.process.pid})
        os.kill(self.process.pid, signal.SIGSTOP)
        self._sleep(STOP_SECONDS)
        os.kill(self.process.pid, signal.SIGCONT)
        self._journal.done(number)

    def fill(self) -> None:
        """Let no file of it grow for some seconds, as on a full disk; start it again if it ends."""
        pid = self.process.pid
        _, limit = resource.prlimit(pid, resource.RLIMIT_FSIZE)
        number = self._journal.note({"kind": "let write", "pid": pid})
        resource.prlimit(pid, resource.RLIMIT_FSIZE, (1, limit))
        self._sleep(FULL_SECONDS)
        with contextlib.suppress(ProcessLookupError):
            resource.prlimit(pid, resource.RLIMIT_FSIZE, (limit, limit))
        self._journal.done(number)
        time.sleep(0.2)
        if self.process.poll() is not None or not self._answers():
            self.process.kill()
            self._restart()

    def end(self) -> None:
        """End it, however it is."""
        _end(self.process)

    def _restart(self) -> None:
        self.end()
        self.process = self._start()

    def _answers(self) -> bool:
        import httpx

        try:
            answer = httpx.get(f"{self.url}/health", timeout=5, trust_env=False)
        except httpx.TransportError:
            return False
        return answer.status_code == 200


@contextlib.contextmanager
def started(
    journal: Journal, sleep: Callable[[float], object], command: Sequence[str] = COMMAND
) -> Iterator[Machine]:
    """A service in a new folder, which is removed behind it. Raises RuntimeError if it fails."""
    with contextlib.ExitStack() as ending:
        name = tempfile.mkdtemp(prefix="verify-")
        number = journal.note({"kind": STARTED, "folder": name})
        ending.callback(journal.done, number)
        ending.callback(shutil.rmtree, name, ignore_errors=True)
        folder = Path(name) / "data"
        folder.mkdir()
        machine = Machine(folder, journal, command, sleep)
        ending.callback(machine.end)
        yield machine


def remove_started(step: Step) -> None:
    """End the service of a run that was killed, if its guard was killed as well; remove its data.

    The lock of the folder says whose process has it, so no other process is ended.
    """
    folder = Path(step["folder"])
    pid = owner(folder / "data")
    if pid is not None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
        ends = time.monotonic() + START_SECONDS
        while owner(folder / "data") is not None and time.monotonic() < ends:
            time.sleep(0.05)
    shutil.rmtree(folder, ignore_errors=True)


def _end(process: subprocess.Popen[str]) -> None:
    process.kill()
    process.wait()
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            pipe.close()  # the end of its input lets its guard go


def let_go_on(step: Step) -> None:
    """Undo a SIGSTOP."""
    with contextlib.suppress(ProcessLookupError):
        os.kill(step["pid"], signal.SIGCONT)


def let_write(step: Step) -> None:
    """Undo a limit of files' sizes."""
    with contextlib.suppress(ProcessLookupError):
        _, limit = resource.prlimit(step["pid"], resource.RLIMIT_FSIZE)
        resource.prlimit(step["pid"], resource.RLIMIT_FSIZE, (limit, limit))


def free_port() -> int:
    """A port of this machine that nobody listens on."""
    with socket.create_server(("127.0.0.1", 0)) as found:
        return int(found.getsockname()[1])
