"""The commands, against a service that a test writes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.local.scripted_service import QUEUE, Run, Service, run_command


def test_a_name_with_a_leading_dash_stands_behind_two(run: Run, service: Service) -> None:
    made = {"visibility_timeout_seconds": 30, "message_retention_seconds": 60}
    service.answers[f"PUT {QUEUE}"] = [(201, {"name": "-orders"} | made)]
    done = run("queue", "create", "--", "-orders")
    assert done.returncode == 0, done.stderr
    assert "-orders" in done.stdout
    assert service.asked == [(f"PUT {QUEUE}", {})]


def test_all_pages_of_queues_are_listed(run: Run, service: Service) -> None:
    pages = [
        (200, {"queues": [{"name": "a"}], "cursor": "next"}),
        (200, {"queues": [{"name": "b"}]}),
    ]
    service.answers["GET /queues"] = list(pages)
    listed = run("queue", "list", "--json")
    assert json.loads(listed.stdout) == [{"name": "a"}, {"name": "b"}]
    service.answers["GET /queues"] = list(pages)
    table = run("queue", "list").stdout
    assert "│ a " in table
    assert "│ b " in table


def test_an_empty_listing_says_what_to_do(run: Run, service: Service) -> None:
    service.answers["GET /queues"] = [(200, {"queues": []})]
    assert "queue create" in run("queue", "list").stdout
    assert run("queue", "list", "--json").stdout == "[]\n"


SENT = {"id": "Msg-1", "body_md5": "5d41402abc4b2a76b9719d911017c592", "sent_at": "now"}


def test_a_sent_message_arrives(run: Run, service: Service) -> None:
    service.answers[f"POST {QUEUE}/messages"] = [(201, {"messages": [SENT]})]
    options = ["--tag", "new", "-a", "colour=red", "--delay-seconds", "5"]
    done = run("send", "orders", "hello", *options)
    assert (done.returncode, done.stdout) == (0, "Msg-1\n")
    message = {"tags": ["new"], "attributes": {"colour": "red"}, "delay_seconds": 5}
    assert service.asked[0][1] == {"messages": [{"body": "hello", **message}]}


def test_lines_are_sent_in_batches(run: Run, service: Service) -> None:
    service.answers[f"POST {QUEUE}/messages"] = [(201, {"messages": []})]
    lines = [f"line {number}" for number in range(20)] + ["x" * 100_000, "y" * 100_000]
    assert run("send", "orders", text="\n".join(lines)).returncode == 0
    batches = [[message["body"] for message in body["messages"]] for _, body in service.asked]
    assert [len(batch) for batch in batches] == [16, 6]
    assert len(set(service.attempts)) == 2
    assert [body for batch in batches for body in batch] == lines


RECEIVED = {
    "id": "Msg-1",
    "sent_at": "2026-11-20T08:00:00.000Z",
    "body": "red \x1b[31m alert\n",
    "receipt": "r1",
}


def test_a_received_message_is_shown_and_cannot_steer_the_terminal(
    run: Run, service: Service
) -> None:
    service.answers[f"POST {QUEUE}/messages/receive"] = [(200, {"messages": [RECEIVED]})]
    done = run("receive", "orders", "--max", "3", "--wait-seconds", "0")
    assert done.returncode == 0
    assert "Msg-1" in done.stdout
    assert "\x1b" not in done.stdout
    assert done.stdout.count("\n") == 1
    assert service.asked == [(f"POST {QUEUE}/messages/receive", {"max": 3, "wait_seconds": 0})]


def test_json_of_a_received_message_is_whole(run: Run, service: Service) -> None:
    service.answers[f"POST {QUEUE}/messages/receive"] = [(200, {"messages": [RECEIVED]})]
    done = run("receive", "orders", "--json")
    assert json.loads(done.stdout) == RECEIVED


def test_shown_messages_are_deleted_on_request(run: Run, service: Service) -> None:
    service.answers[f"POST {QUEUE}/messages/receive"] = [(200, {"messages": [RECEIVED]})]
    failed = {"receipt": "r1", "code": "ReceiptExpired", "detail": "too late"}
    service.answers[f"POST {QUEUE}/messages/delete"] = [(200, {"deleted": [], "failed": [failed]})]
    done = run("receive", "orders", "--delete")
    assert service.asked[1] == (f"POST {QUEUE}/messages/delete", {"receipts": ["r1"]})
    assert "too late" in done.stderr


@pytest.mark.parametrize(
    "arguments",
    [
        ("queue", "create"),
        ("queue", "burn", "a"),
        ("queue", "create", "a", "-a", "nonsense"),
        ("queue", "rewind", "a"),
        ("send", "a", "--deduplication-id", "d"),
        ("receive", "a", "--max", "17"),
        ("up", "--port", "x"),
        ("up", "--time-scale", "0"),
        ("up", "--environments", "elsewhere"),
    ],
)
def test_wrong_usage_exits_with_2(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    done = run_command(*arguments, folder=tmp_path)
    assert done.returncode == 2
    assert done.stderr
    assert list(tmp_path.iterdir()) == []


def test_without_a_service_one_line_says_how_to_start_it(tmp_path: Path) -> None:
    done = run_command("queue", "list", folder=tmp_path)
    assert done.returncode == 1
    assert "cirrusmq up" in done.stderr
    assert done.stderr.count("\n") == 1


def test_half_a_connection_in_the_environment_is_refused(tmp_path: Path) -> None:
    done = run_command("queue", "list", folder=tmp_path, CIRRUSMQ_URL="http://127.0.0.1:1")
    assert done.returncode == 1
    assert "CIRRUSMQ_ACCESS_KEY_ID, CIRRUSMQ_SECRET not set" in done.stderr


def test_the_environment_goes_before_the_folder(run: Run, service: Service, tmp_path: Path) -> None:
    service.answers["GET /queues"] = [(200, {"queues": []})]
    url = json.loads((tmp_path / "connection.json").read_text())["url"]
    done = run(
        "queue",
        "list",
        "--data",
        "elsewhere",
        CIRRUSMQ_URL=url,
        CIRRUSMQ_ACCESS_KEY_ID="other",
        CIRRUSMQ_SECRET="own",
    )
    assert done.returncode == 0, done.stderr
    assert service.authorizations == {"Bearer other:own"}
