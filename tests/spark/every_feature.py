"""A world in which every feature was used once, so that its tables have items of every kind."""

from __future__ import annotations

from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

from tests.service.conftest import TestQueue
from tests.service.faults import Throttled, log_records, puts_into
from tests.service.half import Producers
from tests.service.topics import TestTopic

from cirrusmq.storage.parcels import read_parcel
from cirrusmq_local.testing import Client, World
from cirrusmq_reports.figures import DEAD_REASONS

DAY_SECONDS = 86_400
LARGE = "x" * 60_000
"""A body that is stored in an object."""
STATES = ("active", "inactive", "delayed", "rewindable")

_URLS: dict[str, dict[str, Any]] = {
    "well": {},
    "failing": {"retry": {"policy": "unordered"}},
    "blocked": {"retry": {"policy": "ordered"}, "ordered": True},
}


class EveryFeature:
    """Uses the features in one account's resources; each method uses a few of them."""

    def __init__(self, path: Path) -> None:
        self.world = World(path=path, bodies_in_s3_from=32)
        self.client: Client = self.world.client("acme", admin=True)
        self.world.handle = lambda event: {"batchItemFailures": []}

    def use_all(self) -> None:
        """Use every feature once, those last whose items end soon."""
        self._use_plain_queues()
        self._fold_rates()
        self._use_retries_and_dead_letters()
        self._use_fair_and_ordered_queues()
        self._use_priorities()
        self._use_receivers_and_rewinds()
        self._use_functions()
        self._use_topics()
        self._use_half_messages()
        self._use_urls()
        self._park_shares()
        self._use_keys_grants_and_rates()
        self._make_a_schedule()
        self._wait_with_a_wake_up()
        self.world.run("sweep")
        self.world.settle()
        self._mark_a_head()
        self.world.clock.pass_seconds(1)

    def export(self, folder: Path, since_ms: int | None = None) -> dict[str, Path]:
        """Table → its export, a full one or the changes since a time, by the service's writer."""
        tables = {"Messages": "messages", "Usage": "usage", "Directory": "directory"}
        return {
            table: self.world.engine.export(
                getattr(self.world.tables, name), folder / table, since_ms=since_ms
            )
            for table, name in tables.items()
        }

    def kinds(self) -> dict[str, set[str]]:
        """Table → the kinds of its items."""
        return {
            name.capitalize(): {
                item["pk"]["S"].partition("#")[0] for item in self.world.items(name)
            }
            for name in ("messages", "usage", "directory")
        }

    def counts(self) -> dict[str, dict[str, int]]:
        """Kind and name → the messages that the service's answers count there, if it has any."""
        paths = {}
        for queue in self.client.get("/queues").json["queues"]:
            name = queue["name"]
            paths[f"queue:{name}"] = f"/queues/{name}"
            for receiver in self.client.get(f"/queues/{name}/receivers").json["receivers"]:
                place = f"{name}/{receiver['name']}"
                paths[f"receiver:{place}"] = f"/queues/{name}/receivers/{receiver['name']}"
        for topic in self.client.get("/topics").json["topics"]:
            path = f"/topics/{topic['name']}/subscriptions"
            for each in self.client.get(path).json["subscriptions"]:
                place = f"{topic['name']}/{each['name']}"
                paths[f"subscription:{place}"] = f"{path}/{each['name']}"
        shown = {
            name: self.client.get(path).json.get("counts") or {} for name, path in paths.items()
        }
        counts = {
            name: {state: counted.get(state, 0) for state in STATES}
            for name, counted in shown.items()
        }
        return {name: states for name, states in counts.items() if any(states.values())}

    def reasons(self) -> dict[str, Counter[str]]:
        """Queue → its kept dead letters by reason: those of the service, and any other."""
        names = [queue["name"] for queue in self.client.get("/queues").json["queues"]]
        ids = {self.client.get(f"/queues/{name}").json["id"]: name for name in names}
        counted: dict[str, Counter[str]] = defaultdict(Counter)
        for item in self.world.items("messages"):
            if not item["pk"]["S"].startswith("Q#"):
                continue
            parcel = read_parcel(item)
            if parcel.dead_letter is None or parcel.expires_ms <= self.world.clock.now_ms():
                continue
            reason = parcel.dead_letter["reason"]
            told = reason if reason in DEAD_REASONS else "other"
            live = sum(parcel.live(place) for place in range(parcel.count))
            counted[ids[parcel.source_id]][told] += live
        return {name: +counts for name, counts in counted.items() if +counts}

    def queue(self, name: str, **attributes: Any) -> TestQueue:
        """Make a queue."""
        reply = self.client.put(f"/queues/{name}", attributes)
        assert reply.status == 201, reply.text
        return TestQueue(self.client, name)

    def _use_plain_queues(self) -> None:
        queue = self.queue("plain", rewind_seconds=DAY_SECONDS)
        queue.send("a", "b", "c", attributes={"k": "v"}, tags=["t"])
        queue.send("once", deduplication_id="once")
        queue.send(LARGE)
        queue.delete(queue.receive(1)[0])
        queue.send("later", delay_seconds=3_600)
        for body in ("replaced", "replaces"):
            message = {"body": body, "replace": "profile", "delay_seconds": 3_600}
            assert queue.try_send([message]).status == 201
        cancelled, changed = queue.send("cancelled", "changed", delay_seconds=3_600)
        place = f"{queue.path}/messages"
        assert self.client.delete(f"{place}/{cancelled['id']}").status == 204
        reply = self.client.patch(f"{place}/{changed['id']}", {"delay_seconds": 7_200})
        assert reply.status == 200, reply.text
        asked = self.queue("asked")
        (sent,) = asked.send("2+2", reply={"seconds": 3_600})
        (request,) = asked.receive()
        given = {"receipt": request["receipt"], "reply": {"body": "4"}}
        assert self.client.post(f"{asked.path}/messages/{sent['id']}/reply", given).status == 200
        purged = self.queue("purged")
        purged.send("a", "b")
        self.world.clock.pass_seconds(60)
        assert purged.run("purge")["state"] == "succeeded"

    def _use_retries_and_dead_letters(self) -> None:
        dead = self.queue("dead")
        queue = self.queue(
            "aging", dead_letter={"queue": "dead", "max_receives": 1, "max_age_seconds": 300}
        )
        queue.send("a")
        queue.give_back(*queue.receive())
        queue.receive()
        queue.send("b")
        queue.act("dead-letter", *queue.receive(), reason="wrong")
        self.world.settle()
        assert dead.run("redrive")["state"] == "succeeded"
        queue.send("c")
        queue.act("dead-letter", *queue.receive(), reason="wrong")

    def _use_fair_and_ordered_queues(self) -> None:
        fair = self.queue("fair", fair=True)
        ordered = self.queue(
            "ordered",
            ordered=True,
            rewind_seconds=DAY_SECONDS,
            dead_letter={"queue": "dead", "max_age_seconds": 300},
        )
        for queue in (fair, ordered):
            for group in "abc":
                queue.send(f"{group}1", f"{group}2", group=group)
            queue.delete(queue.receive(1)[0])
            queue.give_back(*queue.receive(1), delay_seconds=5)

    def _use_priorities(self) -> None:
        """A queue with levels in two partitions, beside dead letters, a replace and a request.

        Another one is paused, with messages in it.
        """
        dead = self.queue("ranked-dead", priorities=2)
        queue = self.queue(
            "ranked",
            priorities=4,
            ageing_seconds=60,
            partitions=2,
            rewind_seconds=DAY_SECONDS,
            dead_letter={"queue": "ranked-dead", "max_receives": 3},
        )
        for priority in (1, 4, 2, 4):
            queue.send(f"{priority}", priority=priority)
        queue.send("asked", priority=3, reply={"seconds": 3_600})
        for priority in (1, 4):
            queue.send("replaced", replace="k", priority=priority, delay_seconds=3_600)
        queue.delete(*queue.receive(1))
        for _ in range(2):
            queue.act("dead-letter", *queue.receive(1), reason="wrong")
        dead.delete(*dead.receive(1))
        still = self.queue("still")
        still.send("a", "b")
        still.receive(1)
        assert self.client.patch(still.path, {"paused": True}).status == 200

    def _use_receivers_and_rewinds(self) -> None:
        queue = self.queue("heard", rewind_seconds=DAY_SECONDS)
        queue.send("before")
        queue.add_receiver("all", start="earliest")
        queue.add_receiver("new", start="latest")
        begun = queue.send("x", "y")
        self.world.settle()
        for fields in ({}, {"receiver": "new"}):
            queue.delete(*queue.receive_all(**fields))
        self.world.settle()
        assert queue.run("rewind", to=begun[0]["sent_at"])["state"] == "succeeded"

    def _use_functions(self) -> None:
        """Queues that name a function; a message that is due later leaves an alarm."""
        plain = self.queue("handled", invoke={"function": "handler"})
        plain.send("a")
        plain.send("later", delay_seconds=3_600)
        ordered = self.queue("handled-in-order", ordered=True, invoke={"function": "handler"})
        ordered.send("a", group="g")
        self.world.settle()

    def _use_topics(self) -> None:
        topic = TestTopic(self.client, "news")
        self.queue("inbox")
        topic.subscribe("box", "queue", endpoint="inbox")
        group = topic.subscribe("group", filter={"tags": ["t"]})
        topic.subscribe("eyes", mode="broadcasting")
        topic.publish("now", tags=["t"])
        topic.publish(LARGE)
        for_rewind = group.receive_all()
        group.delete(*for_rewind)
        self.world.settle()
        reply = self.client.post(f"{group.path}/rewind", {"to": for_rewind[0]["sent_at"]})
        assert reply.status == 202, reply.text
        self.world.settle()
        topic.publish("later", delay_seconds=3_600, tags=["t"])

    def _use_half_messages(self) -> None:
        topic = TestTopic(self.client, "orders")
        topic.subscribe("group")
        producers = Producers(topic)
        producers.prepare("undecided")
        producers.prepare(LARGE)
        producers.commit(producers.prepare("committed"))
        producers.roll_back(producers.prepare("rolled back"))
        self.world.clock.pass_seconds(61)
        assert producers.receive()

    def _use_urls(self) -> None:
        """URLs: one takes all, one fails and retries message by message, one in order."""
        topic = TestTopic(self.client, "calls")
        self.world.endpoint = lambda url: None if url.endswith("well") else "status 500"
        for name, fields in _URLS.items():
            topic.subscribe(name, "http", endpoint=f"http://127.0.0.1:9/{name}", **fields)
        topic.publish("a", "b")
        self.world.settle()

    def _park_shares(self) -> None:
        """A group whose writes are throttled while others get their messages."""
        topic = TestTopic(self.client, "parked")
        group = topic.subscribe("group")
        assert topic.try_publish([{"body": "a"}]).status == 201
        fault = Throttled(self.world, puts_into(group.id))
        records = [r for r in log_records(self.world) if topic.shown["id"] in str(r)]
        self.world.run("fan_out", {"Records": records})
        fault.end()
        self.world.invoked.clear()

    def _fold_rates(self) -> None:
        """Let the last hour be past, so that the sweep moves it to its day."""
        self.world.settle()
        self.world.clock.pass_seconds(2 * 3_600)
        self.world.run("sweep")

    def _use_keys_grants_and_rates(self) -> None:
        self.world.client("bob")
        for place in ("/queues/plain", "/topics/news"):
            reply = self.client.put(f"{place}/grants/bob", {"permission": "info"})
            assert reply.status == 200, reply.text

    def _make_a_schedule(self) -> None:
        daily = {"queue": "plain", "every_seconds": DAY_SECONDS, "message": {"body": "day"}}
        reply = self.client.put("/schedules/daily", daily)
        assert reply.status == 201, reply.text

    def _wait_with_a_wake_up(self) -> None:
        queue = self.queue("waited-for", partitions=16)
        assert queue.receive(wait_seconds=5) == []
        queue.send("a", delay_seconds=1)

    def _mark_a_head(self) -> None:
        """So many messages in flight ahead of a partition that its head is marked."""
        queue = self.queue("crowded", partitions=1, visibility_timeout_seconds=43_200)
        for _ in range(40):
            queue.send(*[f"{number}" * 10 for number in range(16)])
        while queue.receive():
            pass
