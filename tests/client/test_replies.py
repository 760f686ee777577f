"""Requests and their replies by the library: asked in one process, answered in another."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import Any

import pytest
from tests.client.conftest import NewQueue, Service, Wait
from tests.client.taking import left

from cirrusmq_client import (
    AsyncClient,
    AsyncConsumer,
    Batches,
    Client,
    Consumer,
    Message,
    Received,
    Reply,
    ReplyTimedOut,
    batch_response,
    errors,
)


def double(message: Received) -> Reply:
    return Reply(message.text * 2, {"seen": message.id})


@pytest.mark.parametrize("attributes", [{}, {"ordered": True}, {"fair": True}])
def test_a_consumers_reply_reaches_the_asker(
    client: Client, new_queue: NewQueue, attributes: dict[str, Any]
) -> None:
    queue = new_queue(**attributes)
    with Consumer(queue, double, client=client, wait_seconds=1), ThreadPoolExecutor(4) as threads:
        asked = [
            threads.submit(client.ask, queue, Message(f"{n}", group="g"), 30) for n in range(6)
        ]
        found = [each.result() for each in asked]
    assert [each.text for each in found] == [f"{n}{n}" for n in range(6)]
    assert found[0].attributes.keys() == {"seen"}
    assert not any(client.show_queue(queue)["counts"].values())


def test_batches_have_a_reply_for_each_message(client: Client, queue: str) -> None:
    sent = client.send(queue, [Message("a", reply_seconds=30)])
    sent += client.send(queue, [Message("b", reply_seconds=30)])

    def handle(messages: list[Received]) -> list[Reply]:
        return [double(each) for each in messages]

    batches = Batches(max_batch=2)
    with Consumer(queue, handle, client=client, batches=batches, wait_seconds=1):
        found = [client.await_reply(queue, each, 20) for each in sent]
    assert [each and each.text for each in found] == ["aa", "bb"]


def test_asyncio_asks_and_replies(stack: Service, queue: str) -> None:
    async def work() -> str:
        async with (
            AsyncClient(stack.connection) as client,
            AsyncConsumer(queue, double, client=client, wait_seconds=1),
        ):
            return (await client.ask(queue, Message("x"), 30)).text

    assert asyncio.run(work()) == "xx"


def test_a_handlers_return_of_none_is_no_reply(client: Client, queue: str) -> None:
    with (
        Consumer(queue, lambda message: None, client=client, wait_seconds=1),
        pytest.raises(ReplyTimedOut),
    ):
        client.ask(queue, Message("x"), 2)


def test_bytes_are_bytes(client: Client, queue: str) -> None:
    (sent,) = client.send(queue, [Message(b"\xff", reply_seconds=30)])
    assert client.await_reply(queue, sent, 0) is None
    (received,) = client.receive(queue, wait_seconds=5)
    assert received.reply_by is not None
    first = client.reply(queue, received, b"\xfe", {"raw": b"\xfd"})
    assert client.reply(queue, received, b"\xfe", {"raw": b"\xfd"}) == first
    found = client.await_reply(queue, sent)
    assert found is not None
    assert (found.body, dict(found.attributes)) == (b"\xfe", {"raw": b"\xfd"})
    with pytest.raises(errors.Conflict):
        client.reply(queue, received, "other")


def test_a_request_is_alone_in_its_call(client: Client, queue: str) -> None:
    soon = [
        client.send(queue, [each])[0].reply_by is not None
        for each in (Message("a"), Message("b", reply_seconds=30))
    ]
    assert soon == [False, True]
    with pytest.raises(errors.InvalidParameter) as caught:
        client.send(queue, [Message("a"), Message("b", reply_seconds=30)])
    assert caught.value.parameter == "messages"


def test_a_message_has_no_reply_without_asking(
    client: Client, new_queue: NewQueue, wait_until: Wait, caplog: pytest.LogCaptureFixture
) -> None:
    queue = new_queue(visibility_timeout_seconds=1)
    (sent,) = client.send(queue, [Message("plain")])
    with pytest.raises(errors.InvalidParameter, match="asks for no reply"):
        client.await_reply(queue, sent)
    with pytest.raises(errors.InvalidParameter, match="seconds"):
        client.ask(queue, Message("plain"))
    (received,) = client.receive(queue, wait_seconds=5)
    with pytest.raises(errors.InvalidParameter) as caught:
        client.reply(queue, received, "4")
    assert caught.value.parameter == "id"
    handled: list[str] = []

    def handle(message: Received) -> Reply | None:
        handled.append(message.id)
        return double(message) if len(handled) == 1 else None

    with Consumer(queue, handle, client=client, wait_seconds=1):
        wait_until(lambda: len(handled) == 2)
    assert "not settled: InvalidParameter" in caplog.text


def test_a_message_with_another_reply_is_deleted(
    client: Client, new_queue: NewQueue, wait_until: Wait
) -> None:
    queue = new_queue(rewind_seconds=600)
    (sent,) = client.send(queue, [Message("x", reply_seconds=60)])
    (received,) = client.receive(queue, wait_seconds=5)
    client.reply(queue, received, "first")
    *_, ended = client.watch_operation(client.rewind_queue(queue, sent.sent_at))
    assert ended["done"] == 1
    with Consumer(queue, double, client=client, wait_seconds=1):
        wait_until(lambda: left(client, queue) == 0)
    found = client.await_reply(queue, sent)
    assert found is not None
    assert found.text == "first"


def test_a_lambda_function_has_no_client_to_reply_with() -> None:
    handler = batch_response(double)
    record = {"messageId": "m", "body": "x"}
    assert handler({"Records": [record]}, None) == {"batchItemFailures": [{"itemIdentifier": "m"}]}


def test_an_asker_without_a_wait_pauses(
    client: Client, new_queue: NewQueue, monkeypatch: pytest.MonkeyPatch
) -> None:
    queue, call = new_queue(), client._transport.call
    looks: list[float] = []

    def at_once(method: str, path: str, *given: Any, **options: Any) -> Any:
        """As for an account with as many waits as it may have."""
        if method == "GET":
            looks.append(time.monotonic())
            options["query"] = {**options["query"], "wait_seconds": "0"}
        return call(method, path, *given, **options)

    monkeypatch.setattr(client._transport, "call", at_once)
    with pytest.raises(ReplyTimedOut):
        client.ask(queue, Message("x"), 3)
    assert len(looks) <= 7
    assert all(after - before > 0.9 for before, after in pairwise(looks))


def test_commands_ask_and_reply(
    client: Client, queue: str, run_command: Callable[..., Any]
) -> None:
    with Consumer(queue, double, client=client, wait_seconds=1):
        assert run_command("ask", queue, "ab", "--seconds", "30").stdout == "abab\n"
        shown = json.loads(run_command("ask", queue, "x", "--json").stdout)
        assert (shown["body"], list(shown["attributes"])) == ("xx", ["seen"])
    (sent,) = client.send(queue, [Message("q", reply_seconds=30)])
    (received,) = client.receive(queue, wait_seconds=5)
    options = (queue, received.id, received.receipt, "a")
    assert run_command("reply", *options).returncode == 0
    again = json.loads(run_command("reply", *options, "--json").stdout)
    found = client.await_reply(queue, sent)
    assert found is not None
    assert (found.text, found.replied_at) == ("a", again["replied_at"])
    late = run_command("ask", queue, "nobody", "--seconds", "1")
    assert (late.returncode, "consumer must reply" in late.stderr) == (1, True)
