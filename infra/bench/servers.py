"""The servers that are measured: our stack and moto's SQS, each in a process of its own."""

from __future__ import annotations

import contextlib
import json
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
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
    """The whole service, on a fresh data folder that goes with it."""
    with tempfile.TemporaryDirectory() as data:
        port = free_port()
        cirrusmq = str(Path(sys.executable).with_name("cirrusmq"))
        command = [cirrusmq, "up", "--port", str(port)]
        command += ["--data", data, "--time-scale", str(scale)]
        with _process(command, f"http://127.0.0.1:{port}/health"):
            connection = json.loads(Path(data, "connection.json").read_text())
            key = f"{connection['access_key_id']}:{connection['secret']}"
            yield Stack(connection["url"], {"Authorization": f"Bearer {key}"})


@contextlib.contextmanager
def motos_sqs() -> Iterator[str]:
    """moto's server; answers its URL."""
    port = free_port()
    command = [sys.executable, "-m", "moto.server", "-p", str(port)]
    with _process(command, f"http://127.0.0.1:{port}/moto-api/"):
        yield f"http://127.0.0.1:{port}"


def free_port() -> int:
    """A port that is free on the loopback address now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextlib.contextmanager
def _process(command: list[str], until: str) -> Iterator[None]:
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        try:
            _wait_for(until)
            yield
        finally:
            process.terminate()
            process.wait(timeout=30)


def _wait_for(url: str, seconds: float = 30) -> None:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        with contextlib.suppress(httpx.HTTPError):
            if httpx.get(url).status_code < 500:
                return
        time.sleep(0.1)
    raise TimeoutError(f"nothing answers at {url}")
