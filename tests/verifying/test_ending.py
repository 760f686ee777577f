"""A run that ends in the middle of a fault: the fault is undone, by the run or from its journal."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from moto.server import ThreadedMotoServer
from tests.local.scripted_service import run_command
from tests.stack import environment
from tests.verifying.test_account_faults import FUNCTION, Cloud

from cirrusmq_local.verifying import machine
from cirrusmq_local.verifying.journal import Journal, play, read_steps
from cirrusmq_local.verifying.machine import Machine

RESERVED = 7
PATIENCE_SECONDS = 60
PROGRAM = f"""
import sys, threading, time
from pathlib import Path
from cirrusmq_local.commands import verify, verify_files
from cirrusmq_local.verifying import account, record, windows
from cirrusmq_local.verifying.journal import Journal

account.STOP_SECONDS = {PATIENCE_SECONDS}
over = threading.Event()
made = verify_files.account(Journal(Path(sys.argv[1])), over.wait)
options = record.Options(
    id="x", seed=1, minutes=1, play_seconds=0, scenes={{}}, hooks=False, functions=False,
    usage=False, faults=[("stopped", lambda: made.stop("{FUNCTION}"))], over=over,
)
with verify._ending(), windows.one_fault(options, record.Outcome()):
    time.sleep({PATIENCE_SECONDS})
"""
"""The command's own handler of signals, around a fault that would last for a minute."""
GUARDED = f"""
import signal, sys, time
from pathlib import Path
from cirrusmq_local.verifying import machine
from cirrusmq_local.verifying.journal import Journal

service = '''
from cirrusmq_local.commands import guarded
guarded.begin()
print("ready at a port", flush=True)
import time; time.sleep({2 * PATIENCE_SECONDS})
'''
command = (sys.executable, "-c", service)
with machine.started(Journal(Path(sys.argv[1])), time.sleep, command) as made:
    if sys.argv[2] == "stopped":
        made.process.send_signal(signal.SIGSTOP)
    print(made.process.pid, flush=True)
    time.sleep({PATIENCE_SECONDS})
"""
"""A run with a service that does nothing, behind the guard of `verify --start`."""
SERVICE = "print('ready at a port', flush=True); import time; time.sleep(100)"


@pytest.fixture
def cloud(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Cloud]:
    """A function with a reserve on a server of moto, which other processes reach."""
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    for name, value in _variables(f"http://{host}:{port}").items():
        monkeypatch.setenv(name, value)
    try:
        made = Cloud(tmp_path)
        made.functions.put_function_concurrency(
            FunctionName=FUNCTION, ReservedConcurrentExecutions=RESERVED
        )
        yield made
    finally:
        # The server's state is of this process, where other tests use moto, too.
        httpx.post(f"http://{host}:{port}/moto-api/reset", trust_env=False)
        server.stop()


def _variables(endpoint: str) -> dict[str, str]:
    return {
        "AWS_ENDPOINT_URL": endpoint,
        "AWS_ACCESS_KEY_ID": "any",
        "AWS_SECRET_ACCESS_KEY": "any",
        "AWS_DEFAULT_REGION": "us-east-1",
    }


@pytest.mark.few(1)
@pytest.mark.parametrize(
    "ended_by", [signal.SIGTERM, pytest.param(signal.SIGKILL, marks=pytest.mark.long)]
)
def test_a_fault_of_an_account_is_undone(
    cloud: Cloud, tmp_path: Path, ended_by: signal.Signals
) -> None:
    path, variables = cloud.journal.path, _variables(os.environ["AWS_ENDPOINT_URL"])
    given: Any = variables
    command = [sys.executable, "-c", PROGRAM, str(path)]
    with subprocess.Popen(command, env=environment() | variables) as run:
        _wait_until(lambda: cloud.concurrency() == 0)
        assert read_steps(path)[0] == {
            "kind": "concurrency",
            "function": FUNCTION,
            "was": RESERVED,
        }
        run.send_signal(ended_by)
        assert run.wait(PATIENCE_SECONDS / 2) != 0

    if ended_by == signal.SIGKILL:
        assert cloud.concurrency() == 0
        ran = run_command("verify", "--undo", str(path), folder=tmp_path, **given)
        assert (ran.returncode, ran.stdout) == (0, "1 step undone\n"), ran.stderr
    assert cloud.concurrency() == RESERVED
    assert read_steps(path) == {0: None}
    cloud.functions.put_function_concurrency(FunctionName=FUNCTION, ReservedConcurrentExecutions=3)
    assert play(path, cloud.account.undoing()) == []
    assert cloud.concurrency() == 3, "what is undone twice leaves later settings alone"


def test_a_stopped_or_full_machine_is_undone(tmp_path: Path) -> None:
    """In the middle of each fault its undoing is in the journal; it can be played any time."""
    (tmp_path / "data").mkdir()
    journal = Journal(tmp_path / "undo.jsonl")
    undone: list[tuple[str, tuple[int, int], str]] = []
    kinds = {"continue": machine.let_go_on, "let write": machine.let_write}

    def end_early(seconds: float) -> None:
        """As `verify --undo` does it while the run is gone."""
        _wait_until(lambda: _state(made) == "T")
        undone.append((_state(made), _limit(made), play(journal.path, kinds)[0]["kind"]))

    made = Machine(tmp_path / "data", journal, (sys.executable, "-c", SERVICE), end_early)
    try:
        no_limit = _limit(made)
        made.stop()
        assert undone == [("T", no_limit, "continue")]
        assert _state(made) != "T"
        number = journal.note({"kind": "let write", "pid": made.process.pid})
        resource.prlimit(made.process.pid, resource.RLIMIT_FSIZE, (1, no_limit[1]))
        assert play(journal.path, kinds) == [{"kind": "let write", "pid": made.process.pid}]
        assert (number, _limit(made)) == (1, no_limit)
    finally:
        made.end()
    for kind, undo in kinds.items():
        undo({"kind": kind, "pid": made.process.pid})  # it is gone: nothing is to be done


@pytest.mark.parametrize("state", ["running", "stopped"])
def test_a_started_service_ends_with_its_run(tmp_path: Path, state: str) -> None:
    path = tmp_path / "undo.jsonl"
    command = [sys.executable, "-c", GUARDED, str(path), state]
    with subprocess.Popen(command, env=environment(), stdout=subprocess.PIPE, text=True) as run:
        assert run.stdout is not None
        pid = int(run.stdout.readline())
        assert _lives(pid)
        run.kill()

    _wait_until(lambda: not _lives(pid))
    (step,) = read_steps(path).values()
    assert step is not None
    folder = Path(step["folder"])
    assert folder.is_dir()
    Journal(path).note({"kind": "remove", "prefix": "verify-x", "account": "verify-x"})
    ran = run_command("verify", "--undo", str(path), folder=tmp_path)
    assert (ran.returncode, ran.stdout) == (0, "2 steps undone\n"), ran.stderr
    assert not folder.exists()
    assert run_command("verify", "--undo", str(path), folder=tmp_path).stdout == "0 steps undone\n"


def test_an_ended_run_leaves_no_service_and_no_step(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "undo.jsonl")
    good, bad = ((sys.executable, "-c", code) for code in (SERVICE, "0 / 0"))

    with machine.started(journal, time.sleep, good) as made:
        folder = made.folder
    with (
        pytest.raises(RuntimeError, match="did not start: ZeroDivisionError"),
        machine.started(journal, time.sleep, bad),
    ):
        pass

    assert (_lives(made.process.pid), folder.exists()) == (False, False)
    assert read_steps(journal.path) == {0: None, 1: None}


def _lives(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def _state(made: Machine) -> str:
    stat = Path(f"/proc/{made.process.pid}/stat").read_text()
    return stat.rpartition(")")[2].split()[0]


def _limit(made: Machine) -> tuple[int, int]:
    return resource.prlimit(made.process.pid, resource.RLIMIT_FSIZE)


def _wait_until(holds: Any) -> None:
    ends = time.monotonic() + PATIENCE_SECONDS
    while not holds():
        assert time.monotonic() < ends
        time.sleep(0.1)
