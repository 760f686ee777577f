"""The same calls for asyncio: one table of them, made by both clients."""

from __future__ import annotations

import asyncio
import dataclasses
import gc
import hashlib
import inspect
import random
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from tests.awaited import Awaited, Loop
from tests.client.conftest import NewQueue

from cirrusmq_client import (
    AsyncClient,
    AsyncProducer,
    Backoff,
    Client,
    Connection,
    Message,
    Queue,
    Received,
    Subscription,
    errors,
)
from cirrusmq_client.answers import QueueWithCounts
from cirrusmq_client.client import BaseClient
from cirrusmq_client.errors import Conflict
from cirrusmq_client.outcomes import Outcome, Sent


class Noted:
    """Calls of a client, with their names and what they answered or raised."""

    def __init__(self, client: Any) -> None:
        self._client = client
        self.history: list[tuple[str, Any]] = []

    def __getattr__(self, name: str) -> Any:
        def call(*arguments: Any, **named: Any) -> Any:
            try:
                answer = getattr(self._client, name)(*arguments, **named)
            except errors.CirrusMQError as error:
                self.history.append((name, error.code))
                return None
            if isinstance(answer, Iterator):
                answer = list(answer)
            # How often an operation is looked at depends on how long it takes.
            noted = answer[-1] if name == "watch_operation" else answer
            self.history.append((name, shape(noted)))
            return answer

        return call


def shape(answer: Any) -> Any:
    """An answer's classes, keys and types: values differ from run to run."""
    if isinstance(answer, Received):
        return shape(dict(answer.json))
    if isinstance(answer, dict):
        # Receipts are keys in an outcome.
        return {key if len(key) < 40 else "receipt": shape(value) for key, value in answer.items()}
    if isinstance(answer, list | tuple):
        return [shape(each) for each in answer]
    if isinstance(answer, errors.CirrusMQError):
        return answer.code
    if dataclasses.is_dataclass(answer):
        fields = {field.name: getattr(answer, field.name) for field in dataclasses.fields(answer)}
        return [type(answer).__name__, shape(fields)]
    return type(answer).__name__


def request_and_reply(client: Any, name: str) -> None:
    client.create_queue(name)
    (sent,) = client.send(name, [Message("2+2", reply_seconds=60)])
    client.await_reply(name, sent, 0)
    (received,) = client.receive(name, wait_seconds=5)
    client.reply(name, received, "4", {"unit": b"kg"})
    client.await_reply(name, sent)
    with suppress(errors.ReplyTimedOut):
        client.ask(name, Message("3+3"), 1)
    client.delete_queue(name)


def use_everything(client: Any, name: str) -> None:
    """Every call of the contract at least once."""
    dead, topic = f"{name}-dead", f"{name}-topic"
    client.health()
    client.endpoints()
    client.create_queue(dead)
    dead_letter = {"queue": dead, "max_receives": 5}
    client.create_queue(name, {"partitions": 1, "dead_letter": dead_letter})
    client.create_queue(name, {"delay_seconds": 7})
    client.change_queue(name, {"rewind_seconds": 3_600})
    client.show_queue(name)
    client.list_queues(prefix=name)
    client.send(name, [Message(str(number)) for number in range(6)])
    client.peek(name, 3)
    client.peek_all(name)
    held = client.receive(name, 16, wait_seconds=5)
    receipts = [message.receipt for message in held]
    client.change_visibility(name, {receipts[0]: 60})
    client.look_up(name, held[0].id, body=True)
    (later,) = client.send(name, [Message("later")])
    client.reschedule(name, later.id, delay_seconds=600)
    client.cancel(name, later.id)
    client.delete(name, receipts[:2])
    client.delete(name, receipts[:1])
    client.give_back(name, receipts[2:3], 600)
    client.dead_letter(name, receipts[3:4], "of no use")
    client.delete_and_receive(name, receipts[4:], wait_seconds=0)
    client.call("GET", f"/queues/{name}")
    client.rewind_queue(name, datetime.now(UTC) - timedelta(days=9))
    ended = client.watch_operation(client.purge_queue(name))
    client.show_operation(ended[-1]["id"])
    client.list_operations(queue=name, kind="purge")
    redrive(client, dead, name)
    request_and_reply(client, f"{name}-asked")
    client.create_receiver(name, "audit", {"start": "latest"})
    client.show_receiver(name, "audit")
    client.list_receivers(name)
    client.show_rates(name, Queue(name, receiver="audit"), topics=[])
    client.receive(Queue(name, receiver="audit"), wait_seconds=0)
    client.list_consumers(Queue(name, receiver="audit"))
    client.delete_receiver(name, "audit")
    client.put_grant(name, "partner", "send")
    client.show_grant(name, "partner")
    client.list_grants(name)
    client.list_granted()
    client.delete_grant(name, "partner")
    key = client.create_key("partner", description="a test")
    client.rotate_key(key["access_key_id"])
    client.list_keys("nobody")
    client.list_changes(key_id=key["access_key_id"])
    client.delete_key(key["access_key_id"])
    weekly = {"queue": dead, "cron": "0 8 * * 1", "message": {"body": "week"}}
    client.put_schedule(name, weekly)
    client.show_schedule(name)
    client.list_schedules(prefix=name)
    client.delete_schedule(name)
    client.create_topic(topic)
    client.change_topic(topic, {"description": "news"})
    client.show_topic(topic)
    client.list_topics(prefix=topic)
    client.put_topic_grant(topic, "partner", "publish")
    client.show_topic_grant(topic, "partner")
    client.list_topic_grants(topic)
    client.delete_topic_grant(topic, "partner")
    client.create_subscription(topic, "pulled", {"protocol": "pull"})
    client.change_subscription(topic, "pulled", {"description": "pulled"})
    client.show_subscription(topic, "pulled")
    client.list_subscriptions(topic)
    (published,) = client.publish(topic, [Message("new")])
    client.trace(topic, published.id)
    client.match(topic, [Message("new")])
    client.try_filter(topic, {"tags": ["new"]}, [Message("new")])
    client.watch_operation(client.rewind_subscription(topic, "pulled", published.sent_at))
    with suppress(Conflict):
        client.redeliver(topic, "pulled", published.id)
    half_messages(client, topic)
    client.read_log(topic, limit=1)
    client.pause_subscription(topic, "pulled")
    client.resume_subscription(topic, "pulled")
    client.retry_now(topic, "pulled")
    client.receive(Subscription(topic, "pulled"), wait_seconds=20)
    client.show_signing_secret(topic, "pulled")
    client.confirm_subscription(topic, "pulled", "no token")
    client.delete_subscription(topic, "pulled")
    client.delete_topic(topic)
    client.send_each(name, [Message("fits"), Message("x" * 70_000)])
    client.receive_where(name, "color", "red")
    client.create_receiver(name, "paused", {})
    client.change_receiver(name, "paused", {"paused": True})
    client.report_billing()
    client.report_backlog()
    client.delete_queue(name)
    client.delete_queue(name)


def redrive(client: Any, dead: str, back: str) -> None:
    """One dead letter given back in each of the ways to choose it."""
    by_note = {"reason": "of no use"}
    for choose in (
        lambda letter: {},
        lambda letter: {"to": back, "max_messages": 1},
        lambda letter: {"to": back, "dead_letter": by_note},
        lambda letter: {"to": back, "ids": [letter.id]},
        lambda letter: {"to": back, "receipts": [letter.receipt]},
    ):
        (letter,) = client.receive(dead, wait_seconds=5)
        chosen = choose(letter)
        if "receipts" not in chosen:
            client.give_back(dead, [letter.receipt], 0)
        client.watch_operation(client.redrive_queue(dead, **chosen))
        (again,) = client.receive(back, wait_seconds=5)
        client.dead_letter(back, [again.receipt], "of no use")


def half_messages(client: Any, topic: str) -> None:
    """What is prepared is committed, rolled back, and asked for."""
    client.commit(topic, client.prepare(topic, [Message("done")]))
    handle = client.prepare(topic, [Message("left")], check_after_seconds=1)
    time.sleep(1.1)
    client.receive_undecided(topic)
    client.roll_back(topic, handle)
    client.commit(topic, handle)


def test_both_clients_make_every_call_alike(stack: Any, loop: Loop) -> None:
    with (
        Client(stack.connection) as blocking,
        Awaited(loop, lambda: AsyncClient(stack.connection)) as awaited,
        ThreadPoolExecutor() as side_by_side,
    ):
        first, second = Noted(blocking), Noted(awaited)
        list(side_by_side.map(use_everything, (first, second), ("both-blocking", "both-asyncio")))

    for one, other in zip(first.history, second.history, strict=True):
        assert one == other
    public = {name for name, _ in inspect.getmembers(BaseClient, inspect.isfunction)}
    assert {name for name, _ in first.history} == {n for n in public if not n.startswith("_")}


def test_answers_have_their_types(stack: Any, new_queue: NewQueue) -> None:
    name = new_queue()

    async def use() -> None:
        async with AsyncClient(stack.connection) as client:
            sent: list[Sent] = await client.send(name, [Message("a")])
            received: list[Received] = await client.receive(name, wait_seconds=5)
            outcome: Outcome = await client.delete(name, [received[0].receipt])
            shown: QueueWithCounts = await client.show_queue(name)
            names = [queue["name"] async for queue in client.list_queues(name)]
            assert (sent[0].id, name) == (received[0].id, names[0])
            assert outcome.failed == []
            assert shown["counts"]["active"] == 0

    asyncio.run(use())


def test_calls_of_one_loop_are_under_way_together(stack: Any, new_queue: NewQueue) -> None:
    names = [new_queue() for _ in range(8)]

    async def receive_all() -> list[list[Received]]:
        async with AsyncClient(stack.connection) as client:
            async with asyncio.TaskGroup() as group:
                tasks = [group.create_task(client.receive(name, wait_seconds=20)) for name in names]
                for name in names:
                    await client.send(name, [Message(name)])
            return [task.result() for task in tasks]

    began = time.monotonic()
    received = asyncio.run(receive_all())

    assert [message.text for (message,) in received] == names
    assert time.monotonic() - began < 20


def test_a_cancelled_call_ends_at_once_and_leaves_the_client_whole(stack: Any, queue: str) -> None:
    async def use() -> None:
        async with AsyncClient(stack.connection) as client:
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(client.receive(queue, wait_seconds=20), 0.5)
            assert (await client.show_queue(queue))["name"] == queue

    began = time.monotonic()
    asyncio.run(use())
    assert time.monotonic() - began < 10


def test_a_pause_before_a_repeat_leaves_the_loop_to_others(unused_port: int) -> None:
    nowhere = Connection(url=f"http://127.0.0.1:{unused_port}", access_key_id="k", secret="s")

    async def use() -> int:
        async with AsyncClient(nowhere, retry=Backoff(tries=3, first_seconds=0.2)) as client:
            call = asyncio.create_task(client.show_queue("a"))
            turns = 0
            while not call.done():
                await asyncio.sleep(0.01)
                turns += 1
            with pytest.raises(errors.NotReachable):
                await call
            return turns

    assert asyncio.run(use()) >= 5


def test_the_blocking_classes_do_not_load_asyncio() -> None:
    script = "import sys, cirrusmq_client; print('asyncio' in sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert done.stdout == "False\n"


def test_the_largest_message_goes_gzipped_and_comes_gzipped(
    stack: Any, new_queue: NewQueue
) -> None:
    name, noise = new_queue(max_message_bytes=4_194_304), random.Random(5).randbytes(4_194_304)

    async def exchange() -> list[Received]:
        async with AsyncClient(stack.connection) as client:
            await client.send(name, [Message(noise)])
            return list(await client.receive(name, wait_seconds=0))

    (received,) = asyncio.run(exchange())
    assert received.data == noise


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_client_works_in_one_loop_after_another(stack: Any, new_queue: NewQueue) -> None:
    queue, client = new_queue(), AsyncClient(stack.connection)

    for number in range(3):
        sent = asyncio.run(client.send(queue, [Message(f"loop {number}")]))
        assert sent[0].id

    async def end() -> int:
        shown: QueueWithCounts = await client.show_queue(queue)
        await client.close()
        with pytest.raises(RuntimeError, match="closed"):
            await client.show_queue(queue)
        return shown["counts"]["active"]

    assert asyncio.run(end()) == 3
    with pytest.raises(RuntimeError, match="closed"):
        asyncio.run(client.send(queue, [Message("too late")]))
    gc.collect()  # Python warns of the connections that the first loops left open


def test_a_client_works_in_two_loops_at_once(stack: Any, new_queue: NewQueue) -> None:
    queue, client = new_queue(), AsyncClient(stack.connection)
    loops = [Loop(), Loop()]

    async def send(name: str) -> list[str]:
        bodies = [f"{name} {number}" for number in range(30)]
        sent = [(await client.send(queue, [Message(body)]))[0].body_md5 for body in bodies]
        wanted = [hashlib.md5(body.encode()).hexdigest() for body in bodies]
        return [
            body for body, *found in zip(bodies, sent, wanted, strict=True) if len({*found}) > 1
        ]

    with ThreadPoolExecutor(2) as pool:
        wrong = list(pool.map(lambda loop: loop.run(lambda: send(str(id(loop)))), loops))
    loops[0].run(client.close)
    for loop in loops:
        loop.run(lambda: asyncio.sleep(0.1))
        loop.stop()

    assert wrong == [[], []]


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_producer_of_one_loop_is_refused_in_a_second(stack: Any, new_queue: NewQueue) -> None:
    queue, client = new_queue(), AsyncClient(stack.connection)
    producer = AsyncProducer(client)

    async def send_soon() -> Sent:
        return await (await producer.send_soon(queue, "body"))

    async def end() -> Sent:
        async with client:
            with pytest.raises(RuntimeError, match="make one in each loop"):
                await send_soon()
            return await producer.send(queue, "body")

    assert asyncio.run(send_soon()).id
    assert asyncio.run(end()).id
    gc.collect()
