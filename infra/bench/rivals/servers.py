"""Starts the measured servers, each in a separate process, on free ports of this machine."""

from __future__ import annotations

import contextlib
import json
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import httpx


@dataclass(frozen=True)
class Stack:
    """A running stack."""

    url: str
    headers: dict[str, str]


@contextlib.contextmanager
def our_stack(scale: float = 1.0) -> Iterator[Stack]:
    """Runs the whole service, on a new data folder that is removed after it."""
    with tempfile.TemporaryDirectory() as data:
        port = free_port()
        cirrusmq = str(Path(sys.executable).with_name("cirrusmq"))
        command = [cirrusmq, "up", "--port", str(port)]
        command += ["--data", data, "--time-scale", str(scale)]
        with run_server(command, lambda: wait_for_answer(f"http://127.0.0.1:{port}/health")):
            connection = json.loads(Path(data, "connection.json").read_text())
            key = f"{connection['access_key_id']}:{connection['secret']}"
            yield Stack(connection["url"], {"Authorization": f"Bearer {key}"})


def free_port() -> int:
    """Returns a port that is free on the loopback address now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextlib.contextmanager
def run_server(command: list[str], wait: Callable[[], None]) -> Iterator[None]:
    """Runs a server in a separate process within the block, which begins when `wait` returns."""
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        try:
            wait()
            yield
        finally:
            process.terminate()
            process.wait(timeout=30)


def wait_for_port(address: tuple[str, int], seconds: float = 30) -> None:
    """Waits until a server listens at the address."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        with contextlib.suppress(OSError), socket.create_connection(address):
            return
        time.sleep(0.05)
    raise TimeoutError(f"nobody listens at {address}")


def wait_for_answer(url: str, seconds: float = 30) -> None:
    """Waits until a server answers at the URL, with less than 500."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        with contextlib.suppress(httpx.HTTPError):
            if httpx.get(url).status_code < 500:
                return
        time.sleep(0.1)
    raise TimeoutError(f"nothing answers at {url}")
