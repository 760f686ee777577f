"""Files as the standard input of `send`, `publish` and `topic match`: of any system."""

from __future__ import annotations

import pytest
from tests.client.conftest import NewQueue, Run
from tests.client.taking import bodies

from cirrusmq_client import Client


@pytest.mark.few(3)
@pytest.mark.parametrize(
    ("content", "expected", "empty"),
    [
        (b"one\r\ntwo\r\n", ["one", "two"], 0),
        (b"one\r\ntwo", ["one", "two"], 0),
        (b"one\n\ntwo\n\n", ["one", "two"], 2),
        (b"one\r\n\r\ntwo\r\n", ["one", "two"], 1),
        (b"\xef\xbb\xbfone\r\ntwo\r\n", ["one", "two"], 0),
        ("größer\nürgent\n".encode(), ["größer", "ürgent"], 0),
        (b"a\rb\n \n", [" ", "a\rb"], 0),
        (b"", [], 0),
    ],
)
def test_a_file_of_another_system_is_sent_line_by_line(
    run_command: Run,
    client: Client,
    queue: str,
    content: bytes,
    expected: list[str],
    empty: int,
) -> None:
    done = run_command("send", queue, text=content, LC_ALL="C", PYTHONUTF8="0")

    assert done.returncode == 0, done.stderr
    assert bodies(client, queue) == expected
    told = f"cirrusmq: left out: {empty} empty line{'s' * (empty != 1)}\n" if empty else ""
    assert done.stderr == told


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be"])
def test_a_file_in_utf_16_is_told_as_such(
    run_command: Run, client: Client, queue: str, encoding: str
) -> None:
    done = run_command("send", queue, text="one\ntwo\n".encode(encoding))

    assert done.returncode == 1
    assert done.stderr == (
        "cirrusmq: standard input is UTF-16, not UTF-8; sent before it: 0 messages"
        " (convert it: iconv -f UTF-16 -t UTF-8)\n"
    )
    assert bodies(client, queue) == []


def test_a_non_utf_8_line_is_named(run_command: Run, client: Client, queue: str) -> None:
    lines = [b"line %d" % number for number in range(1, 41)]
    lines[34] = "gr\xf6\xdfer".encode("latin-1")

    done = run_command("send", queue, text=b"\r\n".join(lines))

    assert done.returncode == 1
    assert done.stderr.startswith(
        "cirrusmq: standard input, line 35: byte 3 is not UTF-8; sent before it: 32 messages"
    )
    assert done.stderr.count("\n") == 1
    assert len(done.stdout.split()) == len(bodies(client, queue)) == 32


def test_a_refused_line_is_named(run_command: Run, client: Client, new_queue: NewQueue) -> None:
    queue = new_queue(max_message_bytes=1_024)
    lines = ["", *(f"line {number}" for number in range(2, 20)), "x" * 2_000, "line 21"]

    done = run_command("send", queue, text="\n".join(lines))

    assert done.returncode == 1
    assert done.stderr.startswith("cirrusmq: standard input, line 20: ")
    assert "; sent before it: 16 messages (" in done.stderr
    assert done.stderr.count("\n") == 1
    assert len(bodies(client, queue)) == 16


def test_a_file_of_another_system_is_published_and_matched(
    run_command: Run, client: Client, queue: str, topic: str
) -> None:
    client.create_subscription(topic, "all", {"protocol": "queue", "endpoint": queue})

    matched = run_command("topic", "match", topic, text=b"one\r\n\r\ntwo\r\n")
    published = run_command("publish", topic, text=b"\xef\xbb\xbfone\r\n\r\ntwo\r\n")

    assert matched.stdout == "all\n" * 2
    assert len(published.stdout.splitlines()) == 2
    received = [client.receive(queue, wait_seconds=20)[0].text for _ in range(2)]
    assert sorted(received) == ["one", "two"]
