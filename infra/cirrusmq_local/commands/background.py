"""A service in the background: `cirrusmq up --wait`, `cirrusmq wait` and `cirrusmq down`."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from cirrusmq_client import CirrusMQError, find_connection
from cirrusmq_local.commands.arguments import DATA, Data
from cirrusmq_local.commands.console import fail
from cirrusmq_local.commands.service_checks import check_service

LOG = "service.log"
"""In the data folder: what a service in the background writes to its terminal."""
_POLL_SECONDS = 0.05
_READY = "ready "

Timeout = Annotated[float, typer.Option(help="Seconds after which to give up.", min=0)]


def start(arguments: Sequence[str], data: Path) -> None:
    """Start `cirrusmq` with these arguments apart from this terminal; returns when it is ready.

    Prints what it printed, its process id, and where its key and its output are. Where it does not
    start, its own lines and exit code are this command's.
    """
    log = data / LOG
    try:
        data.mkdir(mode=0o700, parents=True, exist_ok=True)
        written = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    except OSError as error:
        fail(f"{error.filename} cannot be written: {error.strerror}")
    before = os.lseek(written, 0, os.SEEK_END)
    service = subprocess.Popen(
        [sys.executable, "-m", "cirrusmq_local.commands", *arguments],
        stdin=subprocess.DEVNULL,
        stdout=written,
        stderr=written,
        # Ctrl-C at this terminal, and its end, are not for the service.
        start_new_session=True,
    )
    os.close(written)
    told = _wait_for_ready(service, log, before)
    if service.returncode is not None:
        print(told, end="", file=sys.stderr, flush=True)
        raise SystemExit(service.returncode or 1)
    print(told, end="")
    print(f"process {service.pid}", f"key {data / 'connection.json'}", f"log {log}", sep="\n")
    sys.stdout.flush()


def _wait_for_ready(service: subprocess.Popen[bytes], log: Path, before: int) -> str:
    """What the service has written when it is ready, or has ended."""
    while True:
        ended = service.poll() is not None
        with log.open(encoding="utf-8", errors="replace") as held:
            held.seek(before)
            told = held.read()
        whole = told[: told.rfind("\n") + 1]
        if ended or any(line.startswith(_READY) for line in whole.splitlines()):
            return told if ended else whole
        time.sleep(_POLL_SECONDS)


def wait(timeout: Timeout = 30.0, data: Data = DATA) -> None:
    """Wait until the service answers; exits with 1 where it does not in time."""
    until = time.monotonic() + timeout
    while True:
        try:
            health = check_service(find_connection(data))
            if health.time is not None:
                print(health.finding.text)
                return
            reason = health.finding.text
        except CirrusMQError as error:
            reason = error.detail
        if time.monotonic() >= until:
            fail(reason)
        time.sleep(min(_POLL_SECONDS * 4, max(0.0, until - time.monotonic())))


def down(timeout: Timeout = 30.0, data: Data = DATA) -> None:
    """End the service of a data folder, however it was started; done where none runs."""
    from cirrusmq_local.stack.data import owner

    process = owner(data)
    if process is None:
        print(f"no service runs on {data}")
        return
    try:
        os.kill(process, signal.SIGTERM)
    except ProcessLookupError:
        pass
    except PermissionError:
        fail(f"process {process} is another user's")
    until = time.monotonic() + timeout
    while owner(data) == process:
        if time.monotonic() >= until:
            fail(f"process {process} has not ended within {timeout:g} s", "end it: kill -9")
        time.sleep(_POLL_SECONDS)
    print(f"process {process} has ended")
