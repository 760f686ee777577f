"""The command line against the running service."""

from __future__ import annotations

import base64
import contextlib
import json
import os
import pty
import signal
import socket
import subprocess
import time
import uuid
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest
from standardwebhooks import Webhook
from tests.client.conftest import NewQueue, Refuse, Run, RunJson, Service, StartProcess
from tests.client.taking import unused
from tests.forked import Forked
from tests.stack import COMMAND, Start, environment

from cirrusmq_client import Client, Message, Queue, Subscription
from cirrusmq_client.errors import InvalidFilter, ReceiverNotFound

SECRET = "whsec_" + base64.b64encode(b"k" * 24).decode()


def test_messages_go_through_a_queue(run_command: Run, run_json: RunJson) -> None:
    name = unused("q")
    assert run_command("queue", "create", name, "-a", "rewind_seconds=3600").returncode == 0
    assert f"│ {name}" in run_command("queue", "list", "--prefix", name).stdout
    sent = run_command("send", name, "--tag", "new", "-a", "colour=red", text="one\ntwo\n")
    ids = sent.stdout.split()
    assert len(ids) == 2, sent.stderr
    done = run_command("receive", name, "--max", "16", "--wait-seconds", "5", "--delete", "--json")
    received = [json.loads(line) for line in done.stdout.splitlines()]
    assert [message["id"] for message in received] == ids
    assert received[0]["attributes"] == {"colour": "red"}
    assert run_command("receive", name, "--where", "colour=red").stdout == ""
    rewound = run_command("queue", "rewind", name, "--to", received[0]["sent_at"])
    assert rewound.stdout == "rewind done, 2 messages\n"
    assert run_json("queue", "show", name)["counts"]["active"] == 2
    assert "purge done" in run_command("queue", "purge", name, "--yes").stdout
    assert run_command("queue", "delete", name, "--yes").returncode == 0


@pytest.mark.alone
def test_following_prints_messages_until_it_is_ended(
    run_command: Run, start_process: StartProcess, queue: str
) -> None:
    process = start_process(COMMAND, "receive", queue, "--follow", "--delete")
    for body in ("first", "second"):
        assert run_command("send", queue, body).returncode == 0
        assert process.stdout.readline().rstrip().endswith(f"  {body}")
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=20)
    assert (process.returncode, errors) == (0, "")


def test_topics_are_made_subscribed_to_published_on_and_shown(
    run_command: Run, run_json: RunJson, refuse: Refuse, client: Client, new_queue: NewQueue
) -> None:
    queue, topic = new_queue(), unused("t")
    assert run_command("topic", "create", topic).returncode == 0
    made = run_json("subscribe", topic, "orders", "--queue", queue, "--tag", "paid")
    labels = 'labels={"team": "a"}'
    assert made["filter"] == {"tags": ["paid"]}
    assert run_command("subscribe", topic, "group", "--ordered", "-a", labels).returncode == 0
    assert client.show_subscription(topic, "group")["labels"] == {"team": "a"}
    served = ("subscribe", topic, "served", "--invoke", '{"function": "shop"}')
    assert "InvokeFunctions" in refuse(*served)
    assert run_json("publish", topic, "hello", "--tag", "paid")["matched"] == 2
    received = client.receive(queue, wait_seconds=10)
    assert [message.text for message in received] == ["hello"]
    table = run_command("topic", "show", topic).stdout
    assert "orders" in table
    assert "pull" in table
    shown = run_json("topic", "show", topic)["subscriptions"]
    assert [each["name"] for each in shown] == ["group", "orders"]
    assert topic in run_command("topic", "list", "--prefix", topic).stdout
    assert run_command("topic", "delete", topic, "--yes").returncode == 0
    assert "topic list" in refuse("topic", "show", topic)


def test_the_last_hour_of_queues_and_topics_is_shown(
    run_command: Run,
    run_json: RunJson,
    refuse: Refuse,
    client: Client,
    queue: str,
    topic: str,
    group: Subscription,
) -> None:
    client.create_receiver(queue, "audit", {"start": "latest"})
    client.send(queue, [Message("one"), Message("two")])
    client.publish(topic, [Message("three")])
    client.receive(group, wait_seconds=10)
    client.call("POST", "/local/run/meter")

    shown = {
        "sent": run_json("queue", "rates", queue),
        "delivered": run_json("topic", "rates", topic, "--subscription", "group"),
        "published": run_json("topic", "rates", topic),
    }

    sums = {kind: sum(told["rates"][0][kind]) for kind, told in shown.items()}
    assert sums == {"sent": 2, "delivered": 1, "published": 1}
    lines = run_command("queue", "rates", queue).stdout.splitlines()
    assert [word for word in lines[1].split() if word.isalpha()] == [
        *("from", "sent", "received", "deleted", "kept"),
    ]
    assert len(lines) == 12 + 4
    of_receiver = run_command("queue", "rates", queue, "--receiver", "audit")
    assert "delivered" in of_receiver.stdout
    assert "no queue" in refuse("queue", "rates", "nobody").lower()


def test_the_receiving_keys_are_listed(
    run_command: Run,
    run_json: RunJson,
    refuse: Refuse,
    client: Client,
    new_queue: NewQueue,
    group: Subscription,
) -> None:
    name, topic = new_queue(), group.topic
    client.create_receiver(name, "audit", {"start": "latest"})
    assert run_command("queue", "consumers", name).stdout == "no consumers\n"
    for source in (Queue(name, "audit"), group):
        assert list(client.list_consumers(source)) == []
        client.receive(source, wait_seconds=0)
        (consumer,) = client.list_consumers(source)
        assert consumer["access_key_id"] in {key["access_key_id"] for key in client.list_keys()}

    assert run_command("queue", "consumers", name).stdout == "no consumers\n"
    of_receiver = run_command("queue", "consumers", name, "--receiver", "audit").stdout
    assert consumer["access_key_id"] in of_receiver
    assert run_json("topic", "consumers", topic, "group") == [consumer]
    assert "subscription" in refuse("topic", "consumers", topic, "nobody")


def test_dead_letters_are_exported_as_lines_of_json(
    run_command: Run, run_json: RunJson, client: Client, new_queue: NewQueue
) -> None:
    dead = new_queue()
    name = new_queue(dead_letter={"queue": dead, "max_receives": 5})
    for number in range(40):
        client.send(name, [Message(str(number))])
    for number in range(40):
        (held,) = client.receive(name, wait_seconds=5)
        client.dead_letter(name, [held.receipt], reason="odd" if number % 2 else "worse")
    lines = run_command("queue", "export", dead).stdout.splitlines()
    assert sorted(int(json.loads(line)["body"]) for line in lines) == list(range(40))
    odd = run_command("queue", "export", dead, "--reason", "odd", "--source", name).stdout
    assert {json.loads(line)["dead_letter"]["reason"] for line in odd.splitlines()} == {"odd"}
    assert len(odd.splitlines()) == len(list(client.peek_all(dead, {"reason": "odd"}))) == 20
    assert run_command("queue", "export", dead, "--older-than", "3600").stdout == ""
    chosen = json.loads(odd.splitlines()[0])["id"]
    assert run_command("queue", "redrive", dead, "--id", chosen).stdout == (
        "redrive done, 1 message\n"
    )
    assert client.look_up(name, chosen)["state"] == "active"
    assert run_json("queue", "redrive", dead, "--reason", "odd")["done"] == 19
    assert client.show_queue(dead)["counts"]["active"] == 20


def test_a_message_is_looked_up(
    run_command: Run, run_json: RunJson, refuse: Refuse, client: Client, queue: str
) -> None:
    (sent,) = client.send(queue, [Message("hello")])
    shown = run_json("queue", "message", queue, sent.id)
    assert (shown["id"], shown["state"], "message" in shown) == (sent.id, "active", False)
    assert "hello" in run_command("queue", "message", queue, sent.id, "--body").stdout
    assert client.look_up(queue, sent.id, body=True)["message"]["body"] == "hello"
    assert "no such message" in refuse("queue", "message", queue, "Msg-0")


def test_a_group_starts_earlier_and_is_rewound(
    run_command: Run, run_json: RunJson, client: Client, topic: str
) -> None:
    client.create_subscription(topic, "keeper", {"protocol": "pull"})
    sent = run_json("publish", topic, "hello")["sent_at"]
    assert run_json("subscribe", topic, "late", "--start", "earliest")["start"] == "earliest"
    ends = time.monotonic() + 60
    while (rewound := run_command("topic", "rewind", topic, "late", "--to", sent)).returncode:
        assert "Op-" in rewound.stderr  # what the log has is still being given to it
        assert time.monotonic() < ends
        time.sleep(0.5)
    assert (rewound.returncode, rewound.stdout) == (0, "replay done, 1 message\n")


def test_a_receiver_begins_with_the_earlier_messages(
    run_command: Run, client: Client, queue: str
) -> None:
    client.send(queue, [Message("red", tags=["red"]), Message("blue")])
    asked = ("queue", "add-receiver", queue, "late", "--start", "earliest", "--tag", "red")
    added = run_command(*asked)  # it waits until no call is left that does not know of it
    assert (added.returncode, "backfill done, 1 message" in added.stdout) == (0, True)
    assert "│ late" in run_command("queue", "receivers", queue).stdout
    (received,) = client.receive(Queue(queue, "late"), max_messages=16, wait_seconds=5)
    assert received.text == "red"
    assert run_command("queue", "remove-receiver", queue, "late", "--yes").returncode == 0
    assert list(client.list_receivers(queue)) == []


def test_a_message_is_rescheduled_and_cancelled(
    run_command: Run, run_json: RunJson, refuse: Refuse, client: Client, queue: str
) -> None:
    (sent,) = client.send(queue, [Message("hello")])
    reschedule = ("queue", "reschedule", queue, sent.id)
    assert run_json(*reschedule, "--delay-seconds", "600")["state"] == "delayed"
    assert run_json(*reschedule, "--deliver-at", "1")["state"] == "active"
    at = datetime.now(UTC) + timedelta(hours=1)
    assert client.reschedule(queue, sent.id, deliver_at=at)["state"] == "delayed"
    assert run_command("queue", "cancel", queue, sent.id).returncode == 0
    client.cancel(queue, sent.id)
    assert "no such message" in refuse("queue", "message", queue, sent.id)
    (held,) = client.send(queue, [Message("hello")])
    client.receive(queue, wait_seconds=5)
    assert "was received" in refuse("queue", "cancel", queue, held.id)
    with pytest.raises(ReceiverNotFound):
        client.cancel(Queue(queue, "none"), held.id)


def test_a_fair_queue_asks_for_the_group_of_a_message(
    run_command: Run, run_json: RunJson, client: Client
) -> None:
    name = unused("q")
    made = run_command("queue", "create", name, "--fair", "-a", "max_in_flight=2", "-a", "rate=50")
    assert made.returncode == 0, made.stderr
    shown = client.show_queue(name)
    assert (shown["fair"], shown["max_in_flight"], shown["rate"]) == (True, 2, 50)
    one, two = client.send(name, [Message("1", group="a"), Message("2", group="b")])
    put_off = ("queue", "reschedule", name, one.id, "--delay-seconds", "600", "--group", "a")
    assert run_json(*put_off)["state"] == "delayed"
    assert client.look_up(name, one.id, group="a")["state"] == "delayed"
    assert client.reschedule(name, one.id, delay_seconds=0, group="a")["state"] == "active"
    assert run_command("queue", "cancel", name, one.id, "--group", "a").returncode == 0
    client.cancel(name, two.id, group="b")
    assert client.receive(name, wait_seconds=0) == []


def test_a_subscription_is_paused_resumed_and_matched(
    run_command: Run, run_json: RunJson, refuse: Refuse, client: Client, topic: str
) -> None:
    client.create_subscription(topic, "paid", {"protocol": "pull", "filter": {"tags": ["paid"]}})
    client.create_subscription(topic, "web", {"protocol": "http", "endpoint": "http://127.0.0.1:9"})
    assert run_command("topic", "match", topic, "hello", "--tag", "paid").stdout == "paid web\n"
    matched = run_json("topic", "match", topic, "hello")["subscriptions"]
    assert matched == [{"name": "web", "protocol": "http", "paused": False}]
    assert run_json("topic", "pause", topic, "web")["paused"] is True
    assert "paused" in run_command("topic", "show", topic).stdout
    assert "resume it first" in refuse("topic", "retry", topic, "web")
    assert "web" in run_command("topic", "resume", topic, "web").stdout
    assert client.show_subscription(topic, "web")["paused"] is False
    assert run_command("topic", "retry", topic, "web").returncode == 0
    (other,) = client.match(topic, [Message("hello", tags=["other"])])
    assert [each["name"] for each in other["subscriptions"]] == ["web"]
    assert client.pause_subscription(topic, "paid")["paused"] is True
    trace_id = uuid.uuid4().hex
    noted = {"traceparent": f"00-{trace_id}-00f067aa0ba902b7-01"}
    (published,) = client.publish(topic, [Message("hello", attributes=noted)])
    deliveries = run_json("topic", "trace", topic, published.id)["deliveries"]
    assert [each["subscription"] for each in deliveries] == ["web"]
    assert "hello" in run_command("topic", "trace", topic, published.id, "--body").stdout
    while "history" not in (traced := client.trace(topic, published.id)["deliveries"][0]):
        time.sleep(0.05)
    assert traced["history"][0]["error"] == "connection"
    shown = run_command("topic", "trace", topic, published.id).stdout
    assert "latest attempts" in shown
    assert f"trace id: {trace_id}\n" in shown
    assert traced["history"][0]["at"] in shown


def test_a_filter_is_tried_before_anybody_has_it(
    run_command: Run, run_json: RunJson, refuse: Refuse, client: Client, topic: str
) -> None:
    message = ("topic", "match", topic, "hello", "-a", "amount=5")
    assert run_command(*message, "--filter", '{"sql": "amount > 2"}').stdout == "passes\n"
    tried = run_command(*message, "--filter", '{"tags": ["paid"]}')
    assert tried.stdout == "does not pass: it has no tags\n"
    shown = run_json(*message, "--filter", '{"tags": ["paid"]}')
    assert shown == {"passes": False, "why_not": "it has no tags"}
    assert "sql" in refuse(*message, "--filter", '{"sql": "amount >"}')
    assert "--filter" in refuse(*message, "--filter", "amount >", code=2)
    assert client.try_filter(topic, None, [Message("hello")]) == [{"passes": True}]
    with pytest.raises(InvalidFilter):
        client.try_filter(topic, {"binding_keys": ["a"]}, [Message("hello")])


@pytest.mark.parametrize(
    ("arguments", "variables", "expected"),
    [
        (("queue", "show", "none"), {}, "(cirrusmq queue list shows all queues)"),
        (("topic", "show", "none"), {}, "(cirrusmq topic list shows all topics)"),
        (("receive", "none"), {"CIRRUSMQ_SECRET": "wrong"}, "(check CIRRUSMQ_ACCESS_KEY_ID"),
        (
            ("queue", "list"),
            {"CIRRUSMQ_URL": "http://127.0.0.1:1"},
            "at http://127.0.0.1:1 (start the service with: cirrusmq up)",
        ),
        (("queue", "list"), {"CIRRUSMQ_URL": "nonsense"}, "it looks like http://127.0.0.1:8080"),
        (("report", "billing", "--no-make"), {}, "There is no finished report yet."),
        (("report", "backlog", "--no-make"), {}, "There is no finished report yet."),
    ],
)
def test_an_error_is_one_line_with_its_remedy(
    run_command: Run, arguments: tuple[str, ...], variables: dict[str, str], expected: str
) -> None:
    done = run_command(*arguments, **variables)
    assert done.returncode == 1
    assert done.stdout == ""
    assert expected in done.stderr
    assert done.stderr.startswith("cirrusmq: ")
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("queue change a", "--attribute: name what to change: -a name=value"),
        ("topic change a", "--attribute: name what to change: -a name=value"),
        ("topic change-subscription a b", "--attribute: name what to change: -a name=value"),
        ("subscribe t s --queue a --url http://b", "--url: is for subscriptions without --queue"),
        ("subscribe t s --tag a --binding-key a.#", "filter: give one of --tag, --binding-key"),
        ("subscribe t s --retry {", "--retry: {: must be JSON"),
        ("subscribe t s --invoke {", "--invoke: {: must be JSON"),
        ("subscribe t s --rate 5 -a rate=6", "rate is given by another option, too"),
        ("publish t --deduplication-id d", "--deduplication-id: needs exactly one body"),
        ("listen --secret whsec_!", "--secret: a secret is whsec_ and base64"),
        ("listen --status 99", "--status"),
        ("bench --seconds 0", "--seconds"),
        ("bench --batch 16 --bytes 300000", "--batch: at most 13 of so many bytes"),
        ("bench -a ordered=true", "ordered: a load has no groups"),
        ("bench --usage-table usage", "--usage-table: is for --advise"),
        ("report", "cirrusmq report"),
    ],
)
def test_wrong_usage_exits_with_2(run_command: Run, line: str, said: str) -> None:
    done = run_command(*line.split())
    assert done.returncode == 2
    assert said in done.stdout + done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_shells_get_completion(run_command: Run, shell: str) -> None:
    script = run_command(**{"_CIRRUSMQ_COMPLETE": f"source_{shell}"})
    assert "_CIRRUSMQ_COMPLETE" in script.stdout
    asked = {
        "_TYPER_COMPLETE_ARGS": "cirrusmq que",
        "_TYPER_COMPLETE_FISH_ACTION": "get-args",
        "COMP_WORDS": "cirrusmq que",
        "COMP_CWORD": "1",
    }
    done = run_command(**asked, _CIRRUSMQ_COMPLETE=f"complete_{shell}")
    assert "queue" in done.stdout


def test_shells_complete_the_services_names_and_nothing_without_it(
    run_command: Run, queue: str
) -> None:
    line = {"COMP_WORDS": f"cirrusmq queue show {queue[:12]}", "COMP_CWORD": "3"}
    done = run_command(**line, _CIRRUSMQ_COMPLETE="complete_bash")
    assert done.stdout.split() == [queue]
    nowhere = {"CIRRUSMQ_URL": "http://127.0.0.1:1"}
    down = run_command(**line, **nowhere, _CIRRUSMQ_COMPLETE="complete_bash")
    assert (down.stdout.strip(), down.stderr) == ("", "")


def test_there_is_colour_on_a_terminal_alone(run_command: Run, stack: Any) -> None:
    assert "\x1b" not in run_command("queue", "list").stdout
    ours, theirs = pty.openpty()
    environment = {name: held for name, held in os.environ.items() if name != "NO_COLOR"}
    process = subprocess.Popen(
        [COMMAND, "queue", "--help"],
        env=environment | stack.environment | {"TERM": "xterm-256color"},
        stdout=theirs,
        close_fds=True,
    )
    os.close(theirs)
    shown = b""
    while chunk := _read(ours):
        shown += chunk
    os.close(ours)
    assert process.wait(20) == 0
    assert b"\x1b[" in shown


def _read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 4_096)
    except OSError:
        return b""


def test_bench_loads_a_queue_loses_nothing_and_leaves_none(
    run_json: RunJson, client: Client
) -> None:
    options = ("--seconds", "2", "--batch", "4", "--producers", "2", "--consumers", "2")
    figures = run_json("bench", *options)
    assert figures["sent"] == figures["deleted"] > 0
    assert (figures["lost"], figures["failed_calls"]) == (0, {})
    assert set(figures["milliseconds"]) == {"send", "receive", "delete", "from send to receive"}
    for times in figures["milliseconds"].values():
        assert 0 < times["p50"] <= times["p90"] <= times["p99"] <= times["max"]
    # Four of 100 bytes are one parcel: sent, claimed, deleted.
    assert 0.75 <= figures["write_units_per_message"] < 1.5
    assert figures["dollars"] == pytest.approx(sum(figures["dollars_by_line"].values()), abs=1e-6)
    assert list(client.list_queues("bench-")) == []


def test_bench_keeps_to_its_rate_and_takes_a_url(
    run_command: Run, run_json: RunJson, client: Client
) -> None:
    options = ("--seconds", "2", "--rate", "20", "--batch", "1")
    figures = run_json("bench", client.url, *options, CIRRUSMQ_URL="http://127.0.0.1:1")
    assert figures["url"] == client.url
    # A busy machine sends fewer than 20 a second; without a rate it would be hundreds.
    assert 0 < figures["sent"] == figures["deleted"] <= 40
    assert figures["write_units_per_message"] == 3
    shown = run_command("bench", "--seconds", "1", "--rate", "20").stdout
    assert "from send to receive" in shown
    assert "dollars_per_million_messages" in shown


@pytest.mark.long
def test_bench_names_the_cheaper_capacity_by_metered_hours(
    run_command: Run, run_json: RunJson, start: Start
) -> None:
    own = Service(start())  # other tests' use would be more than little
    with Client(own.connection) as client:
        client.create_queue("orders")
        client.send("orders", [Message("x" * 1_000)] * 4)
    told = run_json("bench", "--advise", "--batch", "1", **own.environment)
    assert told["hours"] >= 1
    assert told["dollars_on_demand"] >= 4 * 0.625e-6
    # So little use: the least capacity alone costs more.
    assert told["dollars_provisioned"] >= told["hours"] * 20 * (0.00065 + 0.00013)
    assert (told["cheaper"], told["break_even_percent"]) == ("on-demand", 28.9)
    assert told["MessagesUnits"].startswith("10,")
    shown = run_command("bench", "--advise", **own.environment)
    assert "Capacity=on-demand is cheaper" in shown.stdout
    assert "assumed:" in shown.stderr


Listen = Callable[..., tuple[str, Forked]]


@pytest.fixture
def listen() -> Iterator[Listen]:
    running: list[Forked] = []

    def start(*arguments: str) -> tuple[str, Forked]:
        command = ["listen", "--port", "0", *arguments]
        process = Forked(command, env=environment(), stderr=Path(os.devnull))
        running.append(process)
        return process.stdout.readline().split()[1], process

    yield start
    for process in running:
        process.send_signal(signal.SIGTERM)
        assert process.wait(10) == 0
        process.stdout.close()


def post(url: str, body: str, secret: str = SECRET, age: float = 0) -> int:
    stamp = datetime.fromtimestamp(time.time() - age, UTC)
    headers = {
        "webhook-id": "Msg-1",
        "webhook-timestamp": str(int(stamp.timestamp())),
        "webhook-signature": "v1,other " + Webhook(secret).sign("Msg-1", stamp, body),
        "x-cmq-message-id": "Msg-1",
        "x-cmq-message-tag": "a, b",
    }
    return httpx.post(url, content=body, headers=headers, trust_env=False).status_code


def test_a_listener_prints_deliveries_and_refuses_wrong_signatures(listen: Listen) -> None:
    url, process = listen("--secret", SECRET)
    other = "whsec_" + base64.b64encode(b"o" * 24).decode()
    assert post(url, "héllo\x1b[31m") == 204
    assert post(url, "forged", secret=other) == 401
    assert post(url, "old", age=600) == 401
    assert httpx.post(url, content=b"bare", trust_env=False).status_code == 401
    lines = [process.stdout.readline().rstrip("\n") for _ in range(4)]
    assert lines[0] == r"Msg-1  [a, b]  signature right  answered 204  héllo\x1b[31m"
    assert all("signature wrong  answered 401" in line for line in lines[1:])


def test_a_listener_fails_as_told(listen: Listen) -> None:
    url, process = listen("--fail-first", "2", "--json")
    assert [post(url, "x") for _ in range(3)] == [500, 500, 204]
    assert json.loads(process.stdout.readline())["answered"] == 500
    url, _ = listen("--status", "503")
    assert [post(url, "x") for _ in range(2)] == [503, 503]
    url, _ = listen("--status", "429", "--fail-first", "1")
    assert [post(url, "x") for _ in range(2)] == [429, 204]


def test_a_listener_takes_many_deliveries_at_once(listen: Listen) -> None:
    url, process = listen()
    address = ("127.0.0.1", int(url.rpartition(":")[2]))
    with contextlib.ExitStack() as connections:
        process.send_signal(signal.SIGSTOP)  # so that none is taken from the queue meanwhile
        connections.callback(process.send_signal, signal.SIGCONT)
        for _ in range(64):
            connections.enter_context(socket.create_connection(address, timeout=0.5))
    assert post(url, "x") == 204


def test_the_service_delivers_to_a_listener_with_a_right_signature(
    run_command: Run, run_json: RunJson, topic: str, listen: Listen, unused_port: int
) -> None:
    url = f"http://127.0.0.1:{unused_port}/hook"
    secret = run_json("subscribe", topic, "hook", "--url", url)["secret"]
    _, process = listen("--port", str(unused_port), "--secret", secret, "--json")
    assert run_command("publish", topic, "hello").returncode == 0
    delivery = json.loads(process.stdout.readline())
    assert (delivery["signature"], delivery["answered"]) == ("right", 204)
    assert json.loads(delivery["body"])["msgBody"] == "hello"


def test_a_url_gets_messages_when_they_are_due_at_its_rate(
    run_json: RunJson,
    refuse: Refuse,
    client: Client,
    topic: str,
    listen: Listen,
    unused_port: int,
) -> None:
    url = f"http://127.0.0.1:{unused_port}/hook"
    bounds = ("--rate", "5", "--max-in-flight", "2")
    made = run_json("subscribe", topic, "hook", "--url", url, *bounds)
    assert (made["rate"], made["max_in_flight"]) == (5, 2)
    _, process = listen("--port", str(unused_port), "--secret", made["secret"], "--json")
    begun = time.time()
    assert run_json("publish", topic, "third", "--delay-seconds", "6")["matched"] == 1
    at = datetime.now(UTC) + timedelta(seconds=3)
    client.publish(topic, [Message("second", deliver_at=at), Message("first", delay_seconds=0)])
    assert "deliver_at" in refuse("publish", topic, "x", "--deliver-at", "9999999999")
    due = {"first": begun, "second": at.timestamp(), "third": begun + 6}
    for body in due:
        delivery = json.loads(process.stdout.readline())
        assert json.loads(delivery["body"])["msgBody"] == body
        assert time.time() >= due[body]


@pytest.mark.long
def test_exact_creation_compares_all_attributes(
    run_command: Run, refuse: Refuse, new_queue: NewQueue
) -> None:
    queue, topic = new_queue(delay_seconds=5), new_queue().replace("q-", "t-")
    commands = [
        ("queue", "create", queue),
        ("topic", "create", topic),
        ("subscribe", topic, "group"),
        ("queue", "add-receiver", queue, "copy"),
    ]
    assert run_command("topic", "create", topic, "-a", "max_message_bytes=2048").returncode == 0
    assert run_command("subscribe", topic, "group", "--tag", "a").returncode == 0
    assert run_command("queue", "add-receiver", queue, "copy", "--tag", "a").returncode == 0

    for command in commands:
        assert run_command(*command).returncode == 0
        assert "exists with other attributes" in refuse(*command, "--exact")
