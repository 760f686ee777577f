"""`cirrusmq up`, from outside: one process, started, used, ended and killed."""

from __future__ import annotations

import re
import resource
import signal
import socket
import stat
import time
from email.utils import parsedate_to_datetime
from pathlib import Path

import httpx
import pytest
from tests.stack import START_SECONDS, Stack, Start


def test_it_tells_its_address_and_how_to_connect(shared_stack: Stack) -> None:
    up = shared_stack
    assert up.ready.startswith("ready http://127.0.0.1:")
    assert httpx.get(up.url + "/health", trust_env=False).status_code == 200
    connection = up.connection()
    expected = {"url", "account", "access_key_id", "secret", "dialect_url", "signing_key"}
    assert set(connection) == expected
    assert set(connection["signing_key"]) == {"access_key_id", "secret"}
    assert (connection["url"], connection["account"]) == (up.url, "local")
    assert stat.S_IMODE((up.folder / "connection.json").stat().st_mode) == 0o600
    assert up.client().get("/local/capacity").status_code == 200


@pytest.mark.parametrize(
    "number", [signal.SIGTERM, pytest.param(signal.SIGINT, marks=pytest.mark.long)]
)
def test_it_ends_cleanly_when_it_is_told_to(start: Start, number: int) -> None:
    up = start(installed=True)
    assert up.process.stdout is not None
    told = [up.process.stdout.readline().rstrip("\n") for _ in range(4)]
    assert told == [
        f"dialects {up.connection()['dialect_url']}",
        f"console {up.url}/console",
        f"manual {up.url}/docs",
        f"key {up.folder / 'connection.json'}",
    ]
    assert up.end(number) == (0, "", "")


def test_it_ends_soon_though_calls_wait(start: Start) -> None:
    up = start()
    client = up.client()
    assert client.put("/queues/orders").status_code == 201
    with socket.create_connection(("127.0.0.1", int(up.url.rpartition(":")[2]))) as waiting:
        key = client.headers["authorization"]
        body = b'{"wait_seconds": 30}'
        waiting.sendall(
            b"POST /queues/orders/messages/receive HTTP/1.1\r\nhost: x\r\n"
            b"content-type: application/json\r\nauthorization: "
            + key.encode()
            + b"\r\ncontent-length: %d\r\n\r\n" % len(body)
            + body
        )
        # Answered behind it, so that the call above is under way.
        assert client.get("/queues/orders").status_code == 200
        began = time.monotonic()
        assert up.end()[0] == 0
        assert time.monotonic() - began < 10


# `test_kill.py` has it killed.
def test_an_answered_send_survives_a_restart(start: Start) -> None:
    first = start()
    client = first.client()
    assert client.put("/queues/orders", json={"delay_seconds": 0}).status_code == 201
    sent = client.post("/queues/orders/messages", json={"messages": [{"body": "hello"}]})
    assert sent.status_code == 201
    first.end()
    second = start()
    assert second.connection()["secret"] == first.client().headers["authorization"].split(":")[1]
    received = second.client().post("/queues/orders/messages/receive", json={"wait_seconds": 5})
    assert [held["body"] for held in received.json()["messages"]] == ["hello"]
    assert received.json()["messages"][0]["id"] == sent.json()["messages"][0]["id"]


def test_a_crash_is_told(start: Start) -> None:
    up = start()
    resource.prlimit(up.process.pid, resource.RLIMIT_CORE, (0, 0))
    code, _, told = up.end(signal.SIGSEGV)
    assert code == -signal.SIGSEGV
    # Other threads, which run on here as in no crash of its own, may cut the rest short.
    assert "Fatal Python error: Segmentation fault" in told


def test_a_taken_port_is_told(start: Start) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        up = start("--port", str(taken.getsockname()[1]))
        code = up.process.wait(START_SECONDS)
    told = up.errors()
    assert (code, up.ready) == (1, "")
    assert "--port" in told
    assert told.count("\n") == 1


def test_its_time_runs_faster_and_does_not_go_back(start: Start) -> None:
    first = start("--time-scale", "36000")
    health = httpx.get(first.url + "/health", trust_env=False)
    assert health.json()["time_scale"] == 36_000
    early = parsedate_to_datetime(health.headers["date"])
    time.sleep(0.2)
    last = httpx.get(first.url + "/health", trust_env=False).headers["date"]
    late = parsedate_to_datetime(last)
    assert (late - early).total_seconds() > 3_600
    first.end(signal.SIGKILL)
    second = httpx.get(start().url + "/health", trust_env=False)
    assert parsedate_to_datetime(second.headers["date"]) >= late


def test_a_message_is_delayed_in_its_time(start: Start) -> None:
    client = start("--time-scale", "36000").client()
    client.put("/queues/orders", json={"delay_seconds": 3_600})
    client.post("/queues/orders/messages", json={"messages": [{"body": "later"}]})
    for _ in range(100):
        answer = client.post("/queues/orders/messages/receive", json={}).json()
        if answer["messages"]:
            break
        time.sleep(0.02)
    (message,) = answer["messages"]
    assert message["body"] == "later"


def test_each_table_is_exported(shared_stack: Stack) -> None:
    exports = shared_stack.client().post("/local/export", json={}).json()["exports"]
    assert set(exports) == {"Directory", "Messages", "Usage"}
    for folder in exports.values():
        assert (Path(folder) / "manifest-summary.json").is_file()


def test_the_page_to_try_it_needs_nothing_from_outside(shared_stack: Stack) -> None:
    url = shared_stack.url
    page = httpx.get(url + "/docs/api", trust_env=False)
    assert (page.status_code, page.headers["content-type"]) == (200, "text/html; charset=utf-8")
    assert "//" not in re.sub(r"(?m)^//.*$", "", page.text)
    assets = re.findall(r'(?:href|src)="(api/[^"]+)"', page.text)
    assert len(assets) == 2
    for asset in assets:
        found = httpx.get(f"{url}/docs/{asset}", trust_env=False)
        assert found.status_code == 200
        assert len(found.content) > 100_000
    document = httpx.get(url + "/openapi.json", trust_env=False).json()
    assert document["openapi"].startswith("3.1.")
    assert httpx.get(url + "/docs/api/other.js", trust_env=False).status_code == 404
