"""Following queues and topics: nothing is claimed, nothing is shown twice."""

from __future__ import annotations

import json
import signal
import time
from datetime import UTC, datetime, timedelta
from itertools import islice
from typing import Any

import pytest
from tests.client.conftest import NewQueue, Refuse, StartProcess
from tests.stack import COMMAND

from cirrusmq_client import Client, Message, Queue, Subscription
from cirrusmq_local.commands import tailing
from cirrusmq_local.commands.tailing import active, logged


@pytest.fixture
def since(client: Client) -> datetime:
    return datetime.fromisoformat(client.health()["time"])


def test_a_queue_is_followed_and_nothing_is_taken_until_ctrl_c(
    client: Client, queue: str, start_process: StartProcess
) -> None:
    (first,) = client.send(queue, [Message("first")])
    process = start_process(COMMAND, "tail", queue, "--since", first.sent_at)
    assert process.stdout.readline() == f"{first.id}  {first.sent_at}  first\n"
    client.send(queue, [Message("second")])
    assert process.stdout.readline().endswith("  second\n")
    assert client.show_queue(queue)["counts"]["active"] == 2
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=30)
    assert (process.returncode, errors) == (0, "")


def test_a_topic_is_followed_in_json_and_nobody_else_gets_less(
    client: Client, group: Subscription, start_process: StartProcess
) -> None:
    (sent,) = client.publish(group.topic, [Message("hello", tags=["new"])])
    process = start_process(COMMAND, "tail", group.topic, "--since", sent.sent_at, "--json")
    shown = json.loads(process.stdout.readline())
    assert (shown["id"], shown["body"], shown["tags"]) == (sent.id, "hello", ["new"])
    (received,) = client.receive(group, wait_seconds=20)
    assert received.id == sent.id
    process.send_signal(signal.SIGINT)
    assert process.wait(30) == 0


def test_an_unknown_name_is_told_in_one_line(refuse: Refuse) -> None:
    told = refuse("tail", "none")
    assert ("no queue and no topic none" in told, told.count("\n")) == (True, 1)
    assert "none" in refuse("tail", "none", "--topic")
    assert "--since" in refuse("tail", "none", "--since", "yesterday", code=2)


def test_earlier_messages_are_not_shown_and_later_ones_are_shown_once(
    client: Client, new_queue: NewQueue, since: datetime, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = new_queue(visibility_timeout_seconds=1)
    client.send(name, [Message("old")])
    monkeypatch.setattr(tailing, "LOOK_SECONDS", 0.01)
    shown = active(client, Queue(name), since + timedelta(days=1))
    later = active(client, Queue(name), since)
    assert next(later).text == "old"
    client.receive(name, wait_seconds=5)  # it comes back after a second
    client.send(name, [Message("new"), Message("newer")])
    assert [message.text for message in islice(later, 2)] == ["new", "newer"]
    monkeypatch.setattr(time, "sleep", _stop)
    with pytest.raises(InterruptedError):
        next(shown)


def test_a_look_at_a_long_queue_is_bounded_and_says_so(
    client: Client,
    queue: str,
    since: datetime,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    client.send(queue, [Message(str(number)) for number in range(5)])
    monkeypatch.setattr(tailing, "LOOK_MESSAGES", 3)
    monkeypatch.setattr(time, "sleep", _stop)
    shown = active(client, Queue(queue), since)
    assert len(list(islice(shown, 3))) == 3
    with pytest.raises(InterruptedError):
        next(shown)
    assert "more than 3 messages are active" in capsys.readouterr().err


def test_a_log_is_read_from_its_time_on_and_a_broadcasting_group_selects(
    client: Client, topic: str
) -> None:
    every: Any = {"protocol": "pull", "mode": "broadcasting", "filter": {"tags": ["b"]}}
    client.create_subscription(topic, "caches", every)
    client.create_subscription(topic, "group", {"protocol": "pull"})  # else "a" is not kept
    sent = client.publish(topic, [Message("a", tags=["a"]), Message("b", tags=["b"])])
    at = datetime.fromisoformat(sent[0].sent_at)
    assert [message.text for message in islice(logged(client, topic, at), 2)] == ["a", "b"]
    assert next(logged(client, Subscription(topic, "caches"), at)).text == "b"


def test_times_of_options_are_rfc_3339_or_unix() -> None:
    from cirrusmq_local.commands.arguments import read_time

    moment = datetime(2026, 11, 20, 8, tzinfo=UTC)
    assert read_time("--since", "2026-11-20T08:00:00Z") == moment
    assert read_time("--since", "2026-11-20T08:00:00") == moment
    assert read_time("--since", str(int(moment.timestamp()))) == moment


def _stop(seconds: float) -> None:
    raise InterruptedError(seconds)
