"""`cirrusmq up --wait` and `--definitions`, `cirrusmq wait` and `cirrusmq down`."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.stack import COMMAND, environment

from cirrusmq_client import Client, find_connection
from cirrusmq_local.stack.data import DataFolder, owner

Run = Callable[..., subprocess.CompletedProcess[str]]
PATIENCE_SECONDS = 600
"""A machine may be busy; only a command that hangs takes as long."""
DEFINITIONS = """\
version: 1
queues:
  orders: {ordered: true}
topics:
  news:
    subscriptions:
      web: {protocol: http, endpoint: "http://127.0.0.1:9/hook"}
"""


@pytest.fixture
def data(tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / "data"
    yield folder
    left = owner(folder)
    if left is not None:
        os.kill(left, signal.SIGKILL)


@pytest.fixture
def run(data: Path) -> Run:
    """Run a command on the data folder."""

    def command(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [COMMAND, *arguments, "--data", data],
            capture_output=True,
            check=False,
            text=True,
            env=environment(),
            timeout=PATIENCE_SECONDS,
        )

    return command


def process_of(started: subprocess.CompletedProcess[str]) -> int:
    (line,) = [line for line in started.stdout.splitlines() if line.startswith("process ")]
    return int(line.removeprefix("process "))


def test_a_background_service_is_ready_with_its_definitions_and_survives_kill_9(
    run: Run, data: Path, tmp_path: Path
) -> None:
    file = tmp_path / "shop.yaml"
    file.write_text(DEFINITIONS)
    options = ("--port", "0", "--dialect-port", "0", "--definitions", file)
    started = run("up", "--wait", *options)
    assert started.returncode == 0, started.stderr
    assert started.stdout.splitlines()[-2:] == [
        f"process {owner(data)}",
        f"log {data / 'service.log'}",
    ]
    connection = find_connection(data, {})
    assert f"ready {connection.url}\n" in started.stdout
    with Client(connection) as client:
        assert client.show_queue("orders")["ordered"] is True
    secrets = data / "subscription_secrets.jsonl"
    assert '"topic": "news", "subscription": "web", "secret": "whsec_' in secrets.read_text()
    for path in (secrets, data / "service.log"):
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert run("wait", "--timeout", "300").stdout.startswith(connection.url)

    again = run("up", "--wait", *options)
    assert again.returncode == 1
    assert f"is in use by process {process_of(started)}" in again.stderr

    os.kill(process_of(started), signal.SIGKILL)
    while owner(data) is not None:
        time.sleep(0.02)
    assert run("down").stdout == f"no service runs on {data}\n"
    assert run("wait", "--timeout", "0").returncode == 1

    third = run("up", "--wait", *options)
    assert third.returncode == 0, third.stderr
    assert "orders" not in third.stdout, "nothing was left to make"
    assert run("down", "--timeout", "300").stdout == f"process {process_of(third)} has ended\n"
    assert owner(data) is None


def test_a_wrong_file_starts_nothing(run: Run, data: Path, tmp_path: Path) -> None:
    file = tmp_path / "shop.yaml"
    file.write_text("version: 1\nqueues:\n  orders: {visibility: 60}\n")
    refused = run("up", "--port", "0", "--definitions", file)
    assert (refused.returncode, refused.stdout) == (2, "")
    (line,) = refused.stderr.splitlines()
    assert line.startswith(f"cirrusmq: {file}:3: ")
    assert not data.exists()
    missing = run("up", "--port", "0", "--definitions", tmp_path / "nothing.yaml")
    assert missing.returncode == 2
    assert "nothing.yaml cannot be read" in missing.stderr


@pytest.mark.long
def test_an_impossible_definition_ends_the_start(run: Run, data: Path, tmp_path: Path) -> None:
    file = tmp_path / "shop.yaml"
    file.write_text("version: 1\nqueues: {}\ntopics: {news: {filter: routing_key}}\n")
    options = ("--wait", "--port", "0", "--dialect-port", "0", "--definitions", file)
    assert run("up", *options).returncode == 0
    assert run("down", "--timeout", "300").returncode == 0
    file.write_text("version: 1\nqueues: {}\ntopics: {news: {filter: tags}}\n")
    refused = run("up", *options)
    assert refused.returncode == 1
    told = f"cirrusmq: {file}: topic news: filter: is fixed when the topic is created\n"
    assert refused.stderr == told
    assert "ready" not in refused.stdout + refused.stderr
    assert owner(data) is None


def test_a_folder_has_an_owner_as_long_as_its_lock_is_held(data: Path) -> None:
    assert owner(data) is None
    folder = DataFolder(data)
    folder.lock()
    assert owner(data) == os.getpid()
    folder.unlock()
    assert owner(data) is None
