"""A service in the background: `cirrusmq up --wait`, `cirrusmq wait` and `cirrusmq down`."""

from __future__ import annotations

import contextlib
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
"""File in the data folder with the output of a service in the background."""
READY_FD = "--ready-fd"
"""Hidden option of `up`: the write end of a pipe. The parent reads from the other end if the
service is ready or has ended."""
_POLL_SECONDS = 0.05

Timeout = Annotated[float, typer.Option(help="Maximum wait in seconds.", min=0)]


def start(arguments: Sequence[str], data: Path) -> None:
    """Start `cirrusmq` with these arguments in the background; returns when it is ready.

    Prints its first lines, its process id, and the file of its output. If it does not start, this
    command prints its lines and has its exit code.
    """
    log = data / LOG
    try:
        data.mkdir(mode=0o700, parents=True, exist_ok=True)
        written = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    except OSError as error:
        fail(f"{error.filename} cannot be written: {error.strerror}")
    before = os.lseek(written, 0, os.SEEK_END)
    heard, told = os.pipe()
    service = subprocess.Popen(
        [sys.executable, "-m", "cirrusmq_local.commands", *arguments, READY_FD, str(told)],
        stdin=subprocess.DEVNULL,
        stdout=written,
        stderr=written,
        pass_fds=(told,),
        # Ctrl-C at this terminal, and its end, are not for the service.
        start_new_session=True,
    )
    os.close(written)
    os.close(told)
    try:
        ready = os.read(heard, 1)
    except KeyboardInterrupt:
        service.terminate()
        raise
    with log.open(encoding="utf-8", errors="replace") as held:
        held.seek(before)
        lines = held.read()
    if not ready:
        print(lines, end="", file=sys.stderr, flush=True)
        raise SystemExit(service.wait() or 1)
    print(lines, f"process {service.pid}\nlog {log}", sep="", flush=True)


def tell_ready(descriptor: int | None) -> None:
    """Signal to the command that waits for this service that it is ready."""
    if descriptor is not None:
        with contextlib.suppress(BrokenPipeError):  # that command has already ended
            os.write(descriptor, b"\0")
        os.close(descriptor)


def wait(timeout: Timeout = 30.0, data: Data = DATA) -> None:
    """Wait until the service answers; exits with 1 if it does not answer in time."""
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
    """Stop the service of a data folder; exits with 0 if none runs."""
    from cirrusmq_local.stack.data import owner

    process = owner(data)
    if process is None:
        print(f"no service runs on {data}")
        return
    try:
        with contextlib.suppress(ProcessLookupError):
            os.kill(process, signal.SIGTERM)
    except PermissionError:
        fail(f"process {process} is another user's")
    until = time.monotonic() + timeout
    while owner(data) == process:
        if time.monotonic() >= until:
            fail(f"process {process} has not ended within {timeout:g} s", "end it: kill -9")
        time.sleep(_POLL_SECONDS)
    print(f"process {process} has ended")
