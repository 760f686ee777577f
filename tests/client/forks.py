"""Programs that fork, run by tests in a process of their own: `forks.py <program> <queue>`.

They print what they saw as one JSON document a line.
"""

from __future__ import annotations

import asyncio
import gc
import hashlib
import json
import multiprocessing
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from functools import partial
from typing import Any

from cirrusmq_client import AsyncClient, Client, Consumer, Message, Producer, ending
from cirrusmq_client.attempts import make_attempt

CHILDREN, SENDS = 3, 30


def tell(**seen: object) -> None:
    os.write(1, (json.dumps(seen) + "\n").encode())


def fork(work: Callable[[], None]) -> int:
    child = os.fork()
    if child:
        return child
    status = 1
    try:
        work()
        status = 0
    finally:
        os._exit(status)


def wait_for(children: list[int]) -> None:
    for child in children:
        assert os.waitpid(child, 0)[1] == 0


def send_at_once(queue: str) -> None:
    """Children, and threads of the parent, send through one client that was used before."""
    client = Client()
    producer = Producer(client)
    for number in range(4):  # also what calls find out once, the direct URLs
        client.send(queue, [Message(f"first {number}")])
    enough, begun = threading.Event(), threading.Barrier(4)

    def send(name: str, count: int) -> list[str]:
        wrong = []
        for number in range(count):
            body = f"{name} {number}"
            sent = client.send(queue, [Message(body)])[0]
            if sent.body_md5 != hashlib.md5(body.encode()).hexdigest():
                wrong.append(body)
        return wrong

    def send_on(name: str) -> None:
        wrong = [] if producer.send_soon(queue, f"{name} soon").result(20) else [name]
        begun.wait()
        while not enough.is_set():
            wrong += send(name, 1)
            wrong += [] if producer.send_soon(queue, f"{name} soon").result(20) else [name]
        tell(who=name, wrong=wrong)

    threads = [threading.Thread(target=send_on, args=(f"thread {n}",)) for n in range(3)]
    for thread in threads:
        thread.start()
    begun.wait()
    send("parent before", 10)

    def child(number: int) -> None:
        name = f"child {number}"
        wrong = send(name, SENDS)
        soon = [producer.send_soon(queue, f"{name} soon {n}") for n in range(SENDS)]
        ids = {each.result(20).id for each in soon}
        tell(who=name, wrong=wrong, soon=len(ids), flushed=producer.flush(5))

    children = [fork(partial(child, number)) for number in range(CHILDREN)]
    wait_for(children)
    enough.set()
    for thread in threads:
        thread.join()
    tell(who="parent", wrong=send("parent", SENDS))


def call_by_tls(path: str) -> None:
    """Which port a call comes from: the parent's connection is not used, nor closed."""
    client = Client()

    def port() -> int:
        answered: int = client.call("GET", path)["port"]
        return answered

    def child() -> None:
        gc.collect()  # the parent's connections go, as far as they do
        tell(who="child", port=port())

    before = port()
    wait_for([fork(child) for _ in range(CHILDREN)])
    tell(who="parent", port=before, again=port())


def linger(queue: str) -> None:
    """What lingers at the fork is the parent's."""
    producer = Producer(linger=10)
    kept = [producer.send_soon(queue, f"parent {number}") for number in range(3)]

    def child() -> None:
        mine = producer.send_soon(queue, "child")
        producer.close()
        tell(who="child", sent=mine.done(), parents=[each.done() for each in kept])

    wait_for([fork(child)])
    producer.close()
    tell(who="parent", sent=[each.result(1).id is not None for each in kept])


def consume(queue: str) -> None:
    """A consumer that runs in the parent is one that has not begun in a child."""
    client = Client()
    got: list[str] = []
    consumer = Consumer(queue, lambda message: got.append(message.text), client=client)
    consumer.start()
    client.send(queue, [Message("for the parent")])
    while not got:
        time.sleep(0.01)

    def child() -> None:
        consumer.stop()
        consumer.join()  # it ends nothing of the parent's, and waits for nobody
        tell(who="child", got=got)

    wait_for([fork(child)])
    client.send(queue, [Message("again for the parent")])
    while len(got) < 2:
        time.sleep(0.01)
    consumer.stop()
    consumer.join()
    tell(who="parent", got=got)


def consume_in_child(queue: str) -> None:
    """A consumer that was made before the fork, and even used, runs in the child."""
    client = Client()
    got: list[str] = []
    consumer = Consumer(queue, lambda message: got.append(message.text), client=client)
    with consumer:
        client.send(queue, [Message("one")])
        while not got:
            time.sleep(0.01)

    def child() -> None:
        with consumer:
            client.send(queue, [Message("two")])
            while len(got) < 2:
                time.sleep(0.01)
        tell(who="child", got=got)

    wait_for([fork(child)])


def await_calls(queue: str) -> None:
    """An AsyncClient, used in the parent, in the child's own loop."""
    client = AsyncClient()

    async def send(name: str) -> bool:
        bodies = [f"{name} {number}" for number in range(SENDS)]
        sent = await asyncio.gather(*(client.send(queue, [Message(body)]) for body in bodies))
        return [each[0].body_md5 for each in sent] == [
            hashlib.md5(body.encode()).hexdigest() for body in bodies
        ]

    def child(number: int) -> None:
        tell(who="child", right=asyncio.run(send(f"child {number}")))

    asyncio.run(send("parent"))
    children = [fork(partial(child, number)) for number in range(CHILDREN)]
    tell(who="parent", right=asyncio.run(send("parent again")))
    wait_for(children)


def make_tokens(queue: str) -> None:
    """Tokens of calls differ between children."""
    make_attempt(time.time())
    wait_for([fork(lambda: tell(token=make_attempt(1_000.0))) for _ in range(CHILDREN)])


def transact(topic: str) -> None:
    """A transaction that is open at the fork publishes in the child; the parent makes checks."""

    class Store:
        def run(self, handle: str, work: Callable[[None], object]) -> object:
            return work(None)

        def took_place(self, handle: str) -> bool:
            return True

    def child() -> None:
        done = transaction.run(["from the child"], lambda _: "result")
        transaction.close()  # no check is under way here
        tell(who="child", published=len(done.published or ()), result=done.result)

    with Producer().transaction(topic, check=Store()) as transaction:
        transaction.run(["from the parent"], lambda _: None)
        wait_for([fork(child)])
        done = transaction.run(["again"], lambda _: "result")
        tell(who="parent", published=len(done.published or ()), result=done.result)


def end_by_signal(queue: str) -> None:
    """A child inherits how its parent ends on SIGTERM; it ends as any process does."""
    ready, tell_ready = os.pipe()

    def wait() -> None:
        os.write(tell_ready, b"1")
        time.sleep(30)

    with Producer() as producer, producer.closed_on_signals():
        child = fork(wait)
        os.read(ready, 1)  # Python drops a signal that comes while it forks
        os.kill(child, signal.SIGTERM)
        tell(status=os.waitpid(child, 0)[1])


def end_child(queue: str) -> None:
    """Children of multiprocessing that end while messages linger."""
    for method in ("fork", "spawn", "forkserver"):
        context: Any = multiprocessing.get_context(method)
        process = context.Process(target=send_soon, args=(queue, method))
        process.start()
        process.join()
        tell(who=method, status=process.exitcode)


def end_child_late(queue: str) -> None:
    """A child whose thread still sends when its main thread has ended."""
    process = multiprocessing.get_context("fork").Process(target=send_late, args=(queue,))
    process.start()
    process.join()
    tell(status=process.exitcode)


def end_forked(queue: str) -> None:
    """A plain fork whose child ends as programs do, with the parent's producer in use."""
    producer = Producer(linger=10)
    producer.send_soon(queue, "parent")
    child = os.fork()
    if not child:
        for number in range(100):
            producer.send_soon(queue, f"child {number}")
        sys.exit(0)
    tell(status=os.waitpid(child, 0)[1])


def end(queue: str) -> None:
    """The program ends while messages linger."""
    send_soon(queue, "plain")


def end_impatiently(queue: str) -> None:
    """As `end`, with less patience."""
    ending.EXIT_SECONDS = 0.2
    send_soon(queue, "plain")


def end_looking(queue: str) -> None:
    """As `end`, but the program looks at every future."""
    producer = Producer(linger=0.01)
    futures = [producer.send_soon(queue, f"{number}") for number in range(3)]
    tell(errors=[type(each.exception(60)).__name__ for each in futures])


def close(queue: str) -> None:
    """The program closes the producer and looks at no future."""
    with Producer(linger=10) as producer:
        for number in range(100):
            producer.send_soon(queue, f"{number}")


def send_soon(queue: str, name: str) -> None:
    producer = Producer(linger=10)
    for number in range(100):
        producer.send_soon(queue, f"{name} {number}")


def send_late(queue: str) -> None:
    producer = Producer(linger=10)
    producer.send_soon(queue, "early")

    def send() -> None:
        threading.main_thread().join()
        producer.send_soon(queue, "late")

    threading.Thread(target=send).start()


if __name__ == "__main__":
    globals()[sys.argv[1]](sys.argv[2])
