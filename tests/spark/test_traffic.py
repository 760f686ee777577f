"""A day of random traffic, killed in the middle: the invoice equals a ledger of the calls.

The ledger counts what callers know: messages whose sends were answered, receipts that were
answered, deletes that were answered as done. It reads no table and no export.
"""

from __future__ import annotations

import random
import signal
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.spark.job_runs import Jobs, rows_in, summaries_in
from tests.stack import Start

from cirrusmq_local.testing import Delivery, Subscriber

SCALE = 60
CALLS = 150
PATIENCE_SECONDS = 120
QUIET_SECONDS = 8
WAITS = [20, 20, 20]
"""Of the retries to a URL that always fails."""
HELD = {"visibility_timeout_seconds": 43_200}
Line = tuple[str, str]


class Caller:
    """One client of the stack, and its ledger: (resource, kind) → messages and bytes."""

    def __init__(self, client: httpx.Client, subscriber: Subscriber, seed: int) -> None:
        self.client, self.subscriber = client, subscriber
        self.random = random.Random(seed)
        self.counts: Counter[Line] = Counter()
        self.bytes: Counter[Line] = Counter()
        self.held: list[tuple[str, str, int]] = []
        """Queue, receipt and size of messages that were received, and not deleted."""
        self.sent_at: list[str] = []
        """Of messages received in the queue that is rewound."""
        self.published = 0
        self.dead_letters: dict[str, list[int]] = {}
        """Queue of a subscription whose URL always fails → sizes of its messages."""

    def note(self, resource: str, kind: str, *sizes: int) -> None:
        self.counts[resource, kind] += len(sizes)
        self.bytes[resource, kind] += sum(sizes)

    def put(self, path: str, **body: Any) -> dict[str, Any]:
        answer: dict[str, Any] = self.client.put(path, json=body).raise_for_status().json()
        return answer

    def post(self, path: str, **body: Any) -> dict[str, Any]:
        answer: dict[str, Any] = self.client.post(path, json=body).raise_for_status().json()
        return answer

    def make_resources(self) -> None:
        self.put("/queues/orders", **HELD)
        self.put("/queues/orders/receivers/audit")
        self.put("/queues/again", **HELD, rewind_seconds=86_400)
        self.put("/queues/inbox", **HELD)
        self.put("/queues/gone", **HELD)
        self.put("/topics/news")
        self.put("/topics/news/subscriptions/box", protocol="queue", endpoint="inbox")
        self.subscribe("well")

    def subscribe(self, name: str) -> str:
        """Subscribe a URL; the queue for its dead letters."""
        made = self.put(
            f"/topics/news/subscriptions/{name}",
            protocol="http",
            endpoint=self.subscriber.url(name),
            retry={"policy": "custom", "waits": WAITS},
        )
        return f"queue:dlq-{made['id']}"

    def some_bodies(self) -> list[dict[str, str]]:
        sizes = [self.random.choice((1, 40, 900, 5_000)) for _ in range(self.random.randint(1, 5))]
        return [{"body": self.random.choice("abcd") * size} for size in sizes]

    def send(self, queue: str) -> None:
        messages = self.some_bodies()
        self.post(f"/queues/{queue}/messages", messages=messages)
        sizes = [len(message["body"]) for message in messages]
        self.note(f"queue:{queue}", "sent", *sizes)
        if queue == "orders":
            self.note("queue:orders/audit", "delivered", *sizes)

    def publish(self) -> None:
        messages = self.some_bodies()
        self.post("/topics/news/messages", messages=messages)
        sizes = [len(message["body"]) for message in messages]
        self.note("topic:news", "published", *sizes)
        self.note("queue:inbox", "sent", *sizes)
        self.note("subscription:news/well", "delivered", *sizes)
        self.published += len(sizes)
        for dead in self.dead_letters.values():
            dead += sizes

    def receive(self, queue: str, **more: str) -> int:
        answer = self.post(f"/queues/{queue}/messages/receive", max=16, **more)["messages"]
        sizes = [len(message["body"]) for message in answer]
        place = f"{queue}/{more['receiver']}" if more else queue
        self.sent_at += [message["sent_at"] for message in answer if queue == "again"]
        self.note(f"queue:{place}", "received", *sizes)
        self.held += [
            (place, message["receipt"], size) for message, size in zip(answer, sizes, strict=True)
        ]
        return len(sizes)

    def delete(self) -> None:
        self.random.shuffle(self.held)
        kept = []
        chosen = self.random.choice(self.held)[0] if self.held else ""
        for place, receipt, size in self.held:
            if place != chosen or self.random.random() < 0.3:
                kept.append((place, receipt, size))
                continue
            queue = place.partition("/")[0]
            failed = self.post(f"/queues/{queue}/messages/delete", receipts=[receipt])["failed"]
            assert failed == []
            self.note(f"queue:{place}", "deleted", size)
        self.held = kept

    def act(self) -> None:
        draw = self.random.random()
        if draw < 0.35:
            self.send(self.random.choice(("orders", "again", "gone")))
        elif draw < 0.45:
            self.publish()
        elif draw < 0.6:
            self.receive("orders", receiver="audit")
        elif draw < 0.8:
            self.receive(self.random.choice(("orders", "again", "inbox", "gone")))
        else:
            self.delete()

    def rewind(self) -> None:
        """Bring back all that was deleted in `again`."""
        place = "queue:again"
        told = self.post("/queues/again/rewind", to=min(self.sent_at))
        shown: dict[str, Any] = {"state": "running"}
        while shown["state"] == "running":
            time.sleep(0.2)
            shown = self.client.get(f"/operations/{told['operation']}").json()
        assert shown["done"] == self.counts[place, "deleted"] > 0
        self.counts[place, "rewound"] += shown["done"]
        self.bytes[place, "rewound"] += self.bytes[place, "deleted"]

    def kept(self) -> dict[str, tuple[int, int]]:
        """Resource → messages and bytes that are in it: what came less what was deleted."""
        came = ("queue:orders", "sent"), ("queue:again", "sent"), ("queue:inbox", "sent")
        into = [*came, ("queue:orders/audit", "delivered"), ("queue:again", "rewound")]
        held: dict[str, tuple[int, int]] = {}
        for place, kind in into:
            messages, size = held.get(place, (0, 0))
            more = self.counts[place, kind], self.bytes[place, kind]
            held[place] = messages + more[0], size + more[1]
        for place, (messages, size) in held.items():
            gone = self.counts[place, "deleted"], self.bytes[place, "deleted"]
            held[place] = messages - gone[0], size - gone[1]
        held |= {place: (len(dead), sum(dead)) for place, dead in self.dead_letters.items()}
        return {place: figures for place, figures in held.items() if any(figures)}

    def wait_for_posts(self) -> None:
        """Until every post was made: the retries of a message take less than a second here."""
        patience = time.monotonic() + PATIENCE_SECONDS
        seen, since = -1, time.monotonic()
        while time.monotonic() < patience:
            paths = Counter(each.path for each in self.subscriber.deliveries)
            if sum(paths.values()) != seen:
                seen, since = sum(paths.values()), time.monotonic()
            quiet = time.monotonic() - since > QUIET_SECONDS
            if quiet and paths["well"] >= self.published:
                break
            time.sleep(0.2)
        for name in ("well", "broken"):
            self.counts[f"subscription:news/{name}", "attempted"] = paths[name]


@pytest.fixture
def subscriber() -> Iterator[Subscriber]:
    with Subscriber() as made:
        yield made


@pytest.mark.long
def test_the_invoice_equals_the_ledger_of_the_calls(
    tmp_path: Path, start: Start, jobs: Jobs, subscriber: Subscriber
) -> None:
    def answer(delivery: Delivery) -> int:
        return 204 if delivery.path == "well" else 500

    subscriber.answer = answer
    stack = start("--time-scale", str(SCALE))
    caller = Caller(stack.client(), subscriber, seed=16)
    caller.make_resources()
    for number in range(CALLS):
        if number == CALLS // 2:
            stack.end(signal.SIGKILL)
            stack = start("--time-scale", str(SCALE))
            caller.client = stack.client()
            # A post that is on its way when the stack is killed is counted where it was answered.
            caller.dead_letters[caller.subscribe("broken")] = []
        caller.act()
    caller.rewind()
    caller.wait_for_posts()
    while caller.receive("inbox"):
        pass
    caller.client.delete("/queues/gone").raise_for_status()
    # Until an hour has begun that nothing happens in: its gauges say what the calls left.
    time.sleep(3_600 / SCALE + 1)
    for _ in range(3):
        caller.post("/local/run/sweep")
        caller.post("/local/run/meter")
    exports = caller.post("/local/export")["exports"]
    output = tmp_path / "out"
    ended = jobs.bill(output, [exports["Usage"]])
    assert (ended.code, ended.errors) == (0, "")
    counts: Counter[Line] = Counter()
    sizes: Counter[Line] = Counter()
    rows = rows_in(output, "usage").collect()
    for row in rows:
        counts[row["resource"], row["kind"]] += row["count"]
        sizes[row["resource"], row["kind"]] += row["bytes"]
    of_kept = [row for row in rows if row["kind"] in ("kept", "rewindable")]
    last = max(row["hour"] for row in of_kept)
    shown = [row for row in of_kept if row["hour"] == last]
    assert {row["kind"] for row in shown} == {"kept"}, "what could be rewound was rewound"
    assert {row["resource"]: (row["count"], row["bytes"]) for row in shown} == caller.kept()
    gauges = {place for place in counts if place[1] in ("kept", "rewindable")}
    ended_unsaid = {place for place in counts if place[1] in ("dropped", "dead_lettered")}
    billed = {p: n for p, n in counts.items() if p not in gauges | ended_unsaid}
    assert billed == dict(+caller.counts)
    compared = {place for place in billed if place[1] != "attempted"}
    assert {p: sizes[p] for p in compared} == {p: caller.bytes[p] for p in compared}
    (account,) = summaries_in(output, "billing").values()
    lines = Counter(
        {
            (line["resource"], line["kind"]): 0
            for invoice in account["invoices"]
            for line in invoice["lines"]
        }
    )
    for invoice in account["invoices"]:
        for line in invoice["lines"]:
            lines[line["resource"], line["kind"]] += line["count"]
    assert lines == counts
