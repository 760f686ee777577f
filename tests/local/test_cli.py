"""The commands, against a service that a test writes."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.stack import COMMAND

from cirrusmq_local.stack.data import DataFolder

QUEUE = "/queues/{queue}"
SUBSCRIPTION = "/topics/{topic}/subscriptions/{subscription}"
Run = Callable[..., subprocess.CompletedProcess[str]]


class Service:
    """Answers each route key as a test says, and notes the requests."""

    def __init__(self) -> None:
        self.answers: dict[str, list[tuple[int, Any]]] = {}
        self.asked: list[tuple[str, Any]] = []
        self.attempts: list[str] = []
        self.authorizations: set[str] = set()

    def handle(self, event: Any, context: Any) -> Any:
        key = event["routeKey"]
        body = json.loads(event.get("body") or "null")
        if isinstance(body, dict) and "attempt" in body:
            self.attempts.append(body.pop("attempt"))
        self.asked.append((key, body))
        self.authorizations.add(event["headers"]["authorization"])
        answers = self.answers[key]
        status, value = answers.pop(0) if len(answers) > 1 else answers[0]
        return {"statusCode": status, "body": json.dumps(value) if value is not None else ""}


@pytest.fixture
def service() -> Service:
    return Service()


@pytest.fixture
def run(serve: Any, service: Service, tmp_path: Path) -> Run:
    keys = [
        "GET /queues",
        *(f"{method} {QUEUE}" for method in ("PUT", "GET", "DELETE")),
        *(f"POST {QUEUE}/{work}" for work in ("purge", "rewind", "redrive")),
        *(f"{method} {SUBSCRIPTION}" for method in ("GET", "DELETE")),
        "GET /operations/{id}",
        f"POST {QUEUE}/messages",
        f"POST {QUEUE}/messages/receive",
        f"POST {QUEUE}/messages/delete",
    ]
    port = serve(dict.fromkeys(keys, service.handle)).port
    DataFolder(tmp_path).write_connection(
        {
            "url": f"http://127.0.0.1:{port}",
            "account": "local",
            "access_key_id": "key",
            "secret": "hush",
        }
    )

    def start(
        *arguments: str, text: str = "", terminal: int | None = None, **variables: str
    ) -> Any:
        return run_command(*arguments, folder=tmp_path, text=text, terminal=terminal, **variables)

    return start


def run_command(
    *arguments: str, folder: Path, text: str = "", terminal: int | None = None, **variables: str
) -> subprocess.CompletedProcess[str]:
    environment = {name: held for name, held in os.environ.items() if "CIRRUSMQ" not in name}
    return subprocess.run(
        [COMMAND, *arguments],
        env=environment | {"COLUMNS": "120", "NO_COLOR": "1"} | variables,
        cwd=folder,
        input=text if terminal is None else None,
        stdin=terminal,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def data(folder: Path) -> tuple[str, str]:
    return "--data", str(folder)


def test_a_queue_is_made_with_the_attributes_given(
    run: Run, service: Service, tmp_path: Path
) -> None:
    service.answers[f"PUT {QUEUE}"] = [(201, {"name": "orders", "delay_seconds": 5})]
    attributes = ["-a", "delay_seconds=5", "-a", "description=my orders"]
    attributes += ["-a", 'dead_letter={"queue": "dead", "max_receives": 3}']
    done = run("queue", "create", "orders", *attributes, *data(tmp_path))
    assert done.returncode == 0, done.stderr
    assert "orders" in done.stdout
    assert service.asked == [
        (
            f"PUT {QUEUE}",
            {
                "delay_seconds": 5,
                "description": "my orders",
                "dead_letter": {"queue": "dead", "max_receives": 3},
            },
        )
    ]
    assert service.authorizations == {"Bearer key:hush"}


def test_all_pages_of_queues_are_listed(run: Run, service: Service, tmp_path: Path) -> None:
    pages = [
        (200, {"queues": [{"name": "a"}], "cursor": "next"}),
        (200, {"queues": [{"name": "b"}]}),
    ]
    service.answers["GET /queues"] = list(pages)
    listed = run("queue", "list", "--json", *data(tmp_path))
    assert json.loads(listed.stdout) == [{"name": "a"}, {"name": "b"}]
    service.answers["GET /queues"] = list(pages)
    table = run("queue", "list", *data(tmp_path)).stdout
    assert "│ a " in table
    assert "│ b " in table


def test_an_empty_listing_says_what_to_do(run: Run, service: Service, tmp_path: Path) -> None:
    service.answers["GET /queues"] = [(200, {"queues": []})]
    assert "queue create" in run("queue", "list", *data(tmp_path)).stdout
    assert run("queue", "list", "--json", *data(tmp_path)).stdout == "[]\n"


@pytest.mark.parametrize(("typed", "deleted"), [(b"n\n", False), (b"y\n", True)])
def test_at_a_terminal_a_queue_is_deleted_only_after_a_yes(
    run: Run, service: Service, tmp_path: Path, typed: bytes, deleted: bool
) -> None:
    service.answers[f"DELETE {QUEUE}"] = [(204, None)]
    keyboard, terminal = os.openpty()
    try:
        os.write(keyboard, typed)
        asked = run("queue", "delete", "orders", *data(tmp_path), terminal=terminal)
    finally:
        os.close(keyboard)
        os.close(terminal)
    assert asked.returncode == (0 if deleted else 1)
    assert service.asked == ([(f"DELETE {QUEUE}", None)] if deleted else [])


WAITING = {"active": 7, "inactive": 2, "delayed": 1}


@pytest.mark.parametrize(
    ("subscription", "lost"),
    [
        (
            {"protocol": "pull", "counts": WAITING},
            "lose the messages that wait for it (7 active, 2",
        ),
        ({"protocol": "queue", "endpoint": "orders"}, "What it delivered to orders stays there"),
        ({"protocol": "pull", "mode": "broadcasting"}, "The topic's log keeps its messages"),
    ],
)
def test_at_a_terminal_it_is_said_what_a_subscription_would_lose(
    run: Run, service: Service, tmp_path: Path, subscription: dict[str, Any], lost: str
) -> None:
    shown = {"name": "web", "topic": "news", **subscription}
    service.answers[f"GET {SUBSCRIPTION}"] = [(200, shown)]
    keyboard, terminal = os.openpty()
    try:
        os.write(keyboard, b"n\n")
        asked = run("unsubscribe", "news", "web", *data(tmp_path), terminal=terminal)
    finally:
        os.close(keyboard)
        os.close(terminal)
    assert (asked.returncode, lost in " ".join(asked.stdout.split())) == (1, True)
    assert service.asked == [(f"GET {SUBSCRIPTION}", None)]


def test_a_script_unsubscribes_with_one_call(run: Run, service: Service, tmp_path: Path) -> None:
    service.answers[f"DELETE {SUBSCRIPTION}"] = [(204, None)]
    assert run("unsubscribe", "news", "web", *data(tmp_path)).returncode == 0
    assert service.asked == [(f"DELETE {SUBSCRIPTION}", None)]


def test_work_may_go_on_by_itself(run: Run, service: Service, tmp_path: Path) -> None:
    service.answers[f"POST {QUEUE}/purge"] = [(202, {"operation": "Op-1"})]
    done = run("queue", "purge", "orders", "--no-wait", *data(tmp_path))
    assert (done.returncode, done.stdout) == (0, "Op-1\n")
    assert service.asked == [(f"POST {QUEUE}/purge", {})]


def test_an_operation_is_shown_or_waited_for(run: Run, service: Service, tmp_path: Path) -> None:
    running = {"id": "Op-1", "kind": "purge", "state": "running", "done": 3}
    failed = running | {"state": "failed", "detail": "the queue is gone"}
    service.answers["GET /operations/{id}"] = [(200, running), (200, running), (200, failed)]
    shown = run("operation", "show", "Op-1", "--json", *data(tmp_path))
    assert (shown.returncode, json.loads(shown.stdout)) == (0, running)
    waited = run("operation", "show", "Op-1", "--wait", *data(tmp_path))
    assert (waited.returncode, "the queue is gone" in waited.stderr) == (1, True)


@pytest.mark.parametrize("options", [(), ("--yes",)])
def test_a_script_is_not_asked(
    run: Run, service: Service, tmp_path: Path, options: tuple[str, ...]
) -> None:
    service.answers[f"DELETE {QUEUE}"] = [(204, None)]
    done = run("queue", "delete", "orders", *options, *data(tmp_path))
    assert done.returncode == 0, done.stderr
    assert service.asked == [(f"DELETE {QUEUE}", None)]


def test_long_work_is_followed_to_its_end(run: Run, service: Service, tmp_path: Path) -> None:
    service.answers[f"POST {QUEUE}/redrive"] = [(202, {"operation": "op/1"})]
    running = {"id": "op/1", "kind": "redrive", "state": "running", "done": 3}
    ended = running | {"state": "succeeded", "done": 7}
    service.answers["GET /operations/{id}"] = [(200, running), (200, running), (200, ended)]
    done = run("queue", "redrive", "dead", "--max-messages", "7", *data(tmp_path))
    assert done.returncode == 0, done.stderr
    assert "7 messages" in done.stdout
    assert service.asked[0] == (f"POST {QUEUE}/redrive", {"max_messages": 7})
    assert len(service.asked) == 4


def test_work_that_failed_exits_with_1(run: Run, service: Service, tmp_path: Path) -> None:
    service.answers[f"POST {QUEUE}/rewind"] = [(202, {"operation": "1"})]
    failed = {"kind": "rewind", "state": "failed", "done": 0, "detail": "the queue is gone"}
    service.answers["GET /operations/{id}"] = [(200, failed)]
    done = run("queue", "rewind", "a", "--to", "2026-11-20T08:00:00Z", *data(tmp_path))
    assert done.returncode == 1
    assert "the queue is gone" in done.stderr
    assert service.asked[0][1] == {"to": "2026-11-20T08:00:00Z"}


SENT = {"id": "Msg-1", "body_md5": "5d41402abc4b2a76b9719d911017c592", "sent_at": "now"}


def test_what_is_sent_arrives(run: Run, service: Service, tmp_path: Path) -> None:
    service.answers[f"POST {QUEUE}/messages"] = [(201, {"messages": [SENT]})]
    options = ["--tag", "new", "-a", "colour=red", "--delay-seconds", "5"]
    done = run("send", "orders", "hello", *options, *data(tmp_path))
    assert (done.returncode, done.stdout) == (0, "Msg-1\n")
    message = {"tags": ["new"], "attributes": {"colour": "red"}, "delay_seconds": 5}
    assert service.asked[0][1] == {"messages": [{"body": "hello", **message}]}


def test_lines_are_sent_in_batches(run: Run, service: Service, tmp_path: Path) -> None:
    service.answers[f"POST {QUEUE}/messages"] = [(201, {"messages": []})]
    lines = [f"line {number}" for number in range(20)] + ["x" * 100_000, "y" * 100_000]
    assert run("send", "orders", *data(tmp_path), text="\n".join(lines)).returncode == 0
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


def test_what_is_received_is_shown_and_cannot_steer_the_terminal(
    run: Run, service: Service, tmp_path: Path
) -> None:
    service.answers[f"POST {QUEUE}/messages/receive"] = [(200, {"messages": [RECEIVED]})]
    done = run("receive", "orders", "--max", "3", "--wait-seconds", "0", *data(tmp_path))
    assert done.returncode == 0
    assert "Msg-1" in done.stdout
    assert "\x1b" not in done.stdout
    assert done.stdout.count("\n") == 1
    assert service.asked == [(f"POST {QUEUE}/messages/receive", {"max": 3, "wait_seconds": 0})]


def test_json_of_what_is_received_is_whole(run: Run, service: Service, tmp_path: Path) -> None:
    service.answers[f"POST {QUEUE}/messages/receive"] = [(200, {"messages": [RECEIVED]})]
    done = run("receive", "orders", "--json", *data(tmp_path))
    assert json.loads(done.stdout) == RECEIVED


def test_what_was_shown_is_deleted_when_told_so(run: Run, service: Service, tmp_path: Path) -> None:
    service.answers[f"POST {QUEUE}/messages/receive"] = [(200, {"messages": [RECEIVED]})]
    failed = {"receipt": "r1", "code": "ReceiptExpired", "detail": "too late"}
    service.answers[f"POST {QUEUE}/messages/delete"] = [(200, {"deleted": [], "failed": [failed]})]
    done = run("receive", "orders", "--delete", *data(tmp_path))
    assert service.asked[1] == (f"POST {QUEUE}/messages/delete", {"receipts": ["r1"]})
    assert "too late" in done.stderr


def test_a_refused_call_exits_with_1_and_says_what_to_do(
    run: Run, service: Service, tmp_path: Path
) -> None:
    problem = {"code": "QueueNotFound", "detail": "There is no queue of this name."}
    service.answers[f"GET {QUEUE}"] = [(404, problem)]
    done = run("queue", "show", "orders", *data(tmp_path))
    assert done.returncode == 1
    assert done.stdout == ""
    assert done.stderr.startswith("cirrusmq: There is no queue of this name. (cirrusmq queue list")
    assert done.stderr.count("\n") == 1


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


def test_a_service_that_does_not_answer_is_named(tmp_path: Path, unused_port: int) -> None:
    url = f"http://127.0.0.1:{unused_port}"
    done = run_command(
        "queue",
        "list",
        folder=tmp_path,
        CIRRUSMQ_URL=url,
        CIRRUSMQ_ACCESS_KEY_ID="k",
        CIRRUSMQ_SECRET="s",
    )
    assert done.returncode == 1
    assert url in done.stderr
    assert "Traceback" not in done.stderr


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
