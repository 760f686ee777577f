"""Starting and running on a data folder that is in no good state: one line says what to do."""

from __future__ import annotations

import json
import resource
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from datetime import datetime
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.stack import START_SECONDS, Stack, Start

from cirrusmq.base.timestamps import format_time
from cirrusmq_local.engine import Engine, TableSpec

PATIENCE_SECONDS = 30


def refusal(stack: Stack) -> str:
    """The one line of a service that did not start."""
    assert (stack.process.wait(START_SECONDS), stack.ready) == (1, "")
    told = stack.errors()
    assert told.count("\n") == 1, told
    assert told.startswith("cirrusmq: ")
    return told


def a_file_in_its_way(folder: Path) -> None:
    folder.write_text("notes", encoding="utf-8")


def links_in_a_circle(folder: Path) -> None:
    folder.symlink_to(folder.name)


def a_link_to_nowhere(folder: Path) -> None:
    folder.symlink_to("unmounted")


def a_store_with_other_keys(folder: Path) -> None:
    folder.mkdir()
    tables = [TableSpec("Messages", sort_key="when")]
    Engine(folder / "store.sqlite", tables, now_ms=lambda: 0).close()


def a_store_with_other_columns(folder: Path) -> None:
    folder.mkdir()
    connection = sqlite3.connect(folder / "store.sqlite")
    connection.execute("CREATE TABLE tables (name TEXT PRIMARY KEY, keys TEXT)")
    connection.commit()
    connection.close()


def holding(name: str, text: str | None) -> Callable[[Path], None]:
    """A folder with a file of this text; None: with a folder in its place."""

    def make(folder: Path) -> None:
        folder.mkdir()
        if text is None:
            (folder / name).mkdir()
        else:
            (folder / name).write_text(text, encoding="utf-8")

    return make


@pytest.mark.parametrize(
    ("damage", "name", "advice"),
    [
        (a_file_in_its_way, "data", "move it away"),
        (links_in_a_circle, "data", "symbolic links"),
        (a_link_to_nowhere, "data", "leads nowhere"),
        (
            holding("store.sqlite", "notes " * 1_000),
            *("data/store.sqlite", "put a copy of the folder"),
        ),
        (holding("store.sqlite", None), "data/store.sqlite", "move it away"),
        (a_store_with_other_keys, "data/store.sqlite", "is of another version"),
        (a_store_with_other_columns, "data/store.sqlite", "is of another version"),
        (holding("connection.json", '{"url": "ht'), "data/connection.json", "remove it"),
        (holding("sealing.key", "00ff"), "data/sealing.key", "put its copy back"),
        (holding("functions.log", None), "data/functions.log", "move it away"),
    ],
)
def test_a_fault_of_the_folder_is_told_in_one_line(
    start: Start, tmp_path: Path, damage: Callable[[Path], None], name: str, advice: str
) -> None:
    damage(tmp_path / "data")
    told = refusal(start())
    assert str(tmp_path / name) in told
    assert advice in told
    assert "--port" not in told


# Root gives its rights up first, else no folder refuses it.
LOCK_AS_ANYBODY = """
import os, sys
from pathlib import Path
from cirrusmq_local.stack.data import DataFolder
from cirrusmq_local.engine.data_errors import DataError
folder = DataFolder(Path(sys.argv[1]))
if os.geteuid() == 0:
    os.setuid(65534)
try:
    folder.lock()
except DataError as error:
    print(error)
"""


def test_the_owner_of_a_refusing_folder_is_told() -> None:
    with tempfile.TemporaryDirectory() as above:
        Path(above).chmod(0o711)
        folder = Path(above, "data")
        folder.mkdir(mode=0o500)
        done = subprocess.run(
            [sys.executable, "-c", LOCK_AS_ANYBODY, str(folder)],
            capture_output=True,
            text=True,
            check=True,
            timeout=60,
        )
    assert done.stdout.startswith(f"{folder}/lock: Permission denied, {folder} is of user ")
    assert done.stdout.count("\n") == 1


def test_a_name_with_blanks_and_more_is_a_name(tmp_path: Path) -> None:
    stack = Stack(tmp_path / "mit Leerzeichen ä?#%41")
    try:
        assert stack.client().put("/queues/orders").status_code == 201
        assert (stack.folder / "store.sqlite").is_file()
    finally:
        stack.clean_up()


def test_a_store_begun_anew_gets_a_new_key(start: Start) -> None:
    first = start()
    before = first.connection()
    first.end()
    for path in first.folder.glob("store.sqlite*"):
        path.unlink()
    second = start()
    assert second.client().get("/queues").json() == {"queues": []}
    assert second.connection()["secret"] != before["secret"]


def test_a_time_ahead_is_told_at_the_start(start: Start) -> None:
    first = start()
    assert first.end()[2] == ""  # nothing is ahead in a new folder
    clock = first.folder / "clock.json"
    ahead_ms = json.loads(clock.read_text())["now_ms"] + 86_400_000
    clock.write_text(json.dumps({"now_ms": ahead_ms}), encoding="utf-8")
    second = start()
    assert second.ready.startswith("ready ")
    told = second.end()[2]
    assert told.count("\n") == 1
    # The minute may be over before the start has read it.
    minutes = [format_time(ahead_ms + late_ms)[:16] for late_ms in (0, 60_000)]
    assert any(f"{first.folder}: its time is {minute}" in told for minute in minutes)


def test_a_lost_clock_goes_on_from_the_last_write(start: Start) -> None:
    first = start("--time-scale", "36000")
    assert first.errors() == ""
    client = first.client()
    time.sleep(0.5)
    client.put("/queues/orders")
    sent = client.post("/queues/orders/messages", json={"messages": [{"body": "x"}]}).json()
    first.end(signal.SIGKILL)
    (first.folder / "clock.json").unlink()
    second = start()
    now = datetime.fromisoformat(httpx.get(second.url + "/health", trust_env=False).json()["time"])
    assert now >= datetime.fromisoformat(sent["messages"][0]["sent_at"])


def test_a_vanished_folder_ends_the_service(start: Start, tmp_path: Path) -> None:
    stack = start()
    # At once: what the service writes meanwhile must not be in the way of the removal.
    shutil.rmtree(stack.folder.rename(tmp_path / "removed"))
    assert stack.process.wait(PATIENCE_SECONDS) == 1
    *before, last = stack.errors().splitlines()
    assert f"{stack.folder}/lock is gone or was replaced" in last
    # Work of the service's own may meet the missing store before the lock is looked at.
    assert [line for line in before if "store.sqlite failed" not in line] == []
    assert len(before) <= 1


def wait_until(found: Callable[[], Any]) -> Any:
    ends = time.monotonic() + PATIENCE_SECONDS
    while not (held := found()):
        assert time.monotonic() < ends
        time.sleep(0.05)
    return held


@pytest.mark.long
def test_a_disk_without_space_is_one_line_and_no_end(start: Start) -> None:
    stack = start("--time-scale", "60")
    client = stack.client()
    assert client.put("/queues/orders").status_code == 201
    body = {"messages": [{"body": "x" * 40_000}]}
    # No file of the service grows any more: like a full disk, for this process alone.
    everything = resource.prlimit(stack.process.pid, resource.RLIMIT_FSIZE)
    size = (stack.folder / "store.sqlite-wal").stat().st_size
    resource.prlimit(stack.process.pid, resource.RLIMIT_FSIZE, (size, everything[1]))
    answers = [client.post("/queues/orders/messages", json=body) for _ in range(40)]
    refused = [answer for answer in answers if answer.status_code != 201]
    assert len(refused) > 20
    assert {answer.status_code for answer in refused} == {503}
    for answer in refused:
        assert answer.json()["detail"].startswith("The service's data cannot be stored: ")
        assert "log" not in answer.json()["detail"]
    health = client.get("/health")
    assert health.status_code == 503
    assert health.json()["detail"].startswith("The service's data cannot be stored: ")
    assert client.post("/local/run/meter").status_code == 503
    assert stack.errors().count("\n") == 1, stack.errors()
    said = parsedate_to_datetime(client.get("/health").headers["date"])

    resource.prlimit(stack.process.pid, resource.RLIMIT_FSIZE, everything)
    sent = wait_until(
        lambda: (
            answer.json()
            if (answer := client.post("/queues/orders/messages", json=body)).status_code == 201
            else None
        )
    )
    wait_until(lambda: "can be written again" in stack.errors())
    assert stack.errors().count("\n") == 2, stack.errors()
    stack.end(signal.SIGKILL)
    again = start("--time-scale", "60")
    now = datetime.fromisoformat(httpx.get(again.url + "/health", trust_env=False).json()["time"])
    assert now >= said
    received: list[dict[str, Any]] = []
    while not any(each["id"] == sent["messages"][0]["id"] for each in received):
        answer = again.client().post("/queues/orders/messages/receive", json={"max": 16})
        assert answer.json()["messages"], "an answered message is not active"
        received += answer.json()["messages"]


def health_of(stack: Any) -> dict[str, Any]:
    """As anybody may ask for it, who has no key."""
    answer = httpx.get(stack.url + "/health", trust_env=False)
    assert answer.status_code == 200
    told: dict[str, Any] = answer.json()
    return told


@pytest.mark.few(1)
@pytest.mark.parametrize("copied", [True, False], ids=["copied", "not copied"])
def test_a_damaged_log_shows_in_the_services_health_until_it_is_dealt_with(
    start: Start, copied: bool
) -> None:
    stack = start()
    client = stack.client()
    client.put("/queues/orders").raise_for_status()
    for _ in range(30):
        client.post("/queues/orders/messages", json={"messages": [{"body": "x"}]})
    assert health_of(stack)["status"] == "ok"
    assert "detail" not in health_of(stack)
    stack.end(signal.SIGKILL)
    log = stack.folder / "store.sqlite-wal"
    data = bytearray(log.read_bytes())
    data[32 + 24 + 100] ^= 1  # in the page of the first frame
    log.write_bytes(data)

    again = start()
    (copy,) = stack.folder.glob("store.sqlite-wal.damaged-*")
    if not copied:
        copy.unlink()

    told = health_of(again)
    assert told["status"] == "degraded"
    assert told["detail"].startswith("store.sqlite-wal was damaged: ")
    assert (copy.name in told["detail"]) == copied
    assert str(stack.folder) not in told["detail"], "anybody may ask"
    assert {"version", "time", "time_scale"} < set(told)
    # The service serves: only who looks after it has something to do.
    again.client().put("/queues/more").raise_for_status()
    assert again.client().get("/queues/more").is_success

    again.end()
    third = start()
    assert health_of(third)["status"] == ("degraded" if copied else "ok")
    copy.unlink(missing_ok=True)
    assert health_of(third)["status"] == "ok"
