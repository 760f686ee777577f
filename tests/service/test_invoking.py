"""A queue or a pull group that names a function: it is called when there is something."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import pytest
from msgspec.structs import replace
from tests.service.conftest import TestQueue, sweep
from tests.service.topic_crashes import Crashes
from tests.service.topics import Schedules, TestTopic
from tests.simulation import trigger_plants

from cirrusmq.access import shares
from cirrusmq.base.timestamps import format_time
from cirrusmq.invoking import slots, worker
from cirrusmq.maintenance import visits
from cirrusmq.model.invoke import Invoke
from cirrusmq.receiving import rounds
from cirrusmq.receiving.rounds import Nothing, SourceLook
from cirrusmq.runtime.core import Called
from cirrusmq_local.stack.recovery import release_slots
from cirrusmq_local.testing import World

if TYPE_CHECKING:
    from tests.service.conftest import MakeQueue

INVOKE = {"function": "handler"}
FULL = {
    "function": "handler",
    "max_concurrency": 10,
    "batch": 10,
    "timeout_seconds": 60,
    "event_source": "cirrusmq",
    "breaker": None,
}


class Handler:
    """A function that notes what it gets, and fails what it is told to fail."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.fails: Callable[[dict[str, Any]], bool] = lambda record: False
        self.bodies: list[str] = []
        self.times: dict[str, list[int]] = {}
        world.handle = self

    def __call__(self, event: dict[str, Any]) -> Any:
        failed = []
        for record in event["Records"]:
            self.bodies.append(record["body"])
            self.times.setdefault(record["body"], []).append(self.world.clock.now_ms())
            if self.fails(record):
                failed.append({"itemIdentifier": record["messageId"]})
        return {"batchItemFailures": failed}


@pytest.fixture
def handler(world: World) -> Handler:
    return Handler(world)


@pytest.fixture
def queue(make_queue: MakeQueue) -> TestQueue:
    return make_queue(invoke=INVOKE)


def test_it_is_called_beside_a_waiting_consumer(
    world: World, make_queue: MakeQueue, handler: Handler
) -> None:
    """With so many partitions a wait leaves items of its own under the queue's id."""
    queue = make_queue(partitions=8, invoke=INVOKE)
    assert queue.receive(wait_seconds=5) == []
    queue.send("a")
    world.settle()
    assert handler.bodies == ["a"]
    assert queue.counts() == {}


def test_messages_outside_their_parcels_are_handed_over_together(
    world: World, make_queue: MakeQueue, handler: Handler
) -> None:
    queue = make_queue(partitions=1, invoke=INVOKE)
    bodies = sorted(world.random.randbytes(4_000).hex() for _ in range(3))
    for body in bodies:
        queue.send(body)
    world.settle()
    assert sorted(handler.bodies) == bodies
    assert len(world.batches) == 1


class TestAttribute:
    def test_it_is_shown_with_its_defaults_changed_and_removed(self, queue: TestQueue) -> None:
        assert queue.show()["invoke"] == FULL
        wanted = {**FULL, "max_concurrency": 1, "batch": 16, "timeout_seconds": 840}
        assert queue.patch(invoke=wanted).json["invoke"] == wanted
        assert queue.patch(invoke=None).json["invoke"] is None
        assert queue.show()["invoke"] is None

    def test_an_admin_key_sets_it_and_no_other(self, world: World, queue: TestQueue) -> None:
        ordinary = world.client("alice")
        for reply in (
            ordinary.put("/queues/other", {"invoke": INVOKE}),
            ordinary.patch(queue.path, {"invoke": INVOKE}),
        ):
            assert (reply.status, reply.code) == (403, "Forbidden")
            assert "admin key" in reply.json["detail"]
        assert ordinary.get("/queues/other").status == 404
        # To end it takes no more than any other change.
        assert ordinary.patch(queue.path, {"invoke": None}).status == 200

    def test_elsewhere_keys_of_queue_managers_set_it(self, world: World) -> None:
        settings = replace(world.core.settings, functions_by_managers=True)
        world.core = replace(world.core, settings=settings)
        ordinary = world.client("alice")
        assert ordinary.put("/queues/other", {"invoke": INVOKE}).status == 201
        assert ordinary.put("/queues/third", {"invoke": {"function": "unknown"}}).status == 400

    def test_of_subscriptions_pull_groups_have_it(self, topic: TestTopic) -> None:
        group = topic.subscribe("group", invoke=INVOKE)
        assert group.show()["invoke"] == FULL
        assert group.patch(invoke=None).json["invoke"] is None
        assert group.patch(invoke=INVOKE).json["invoke"] == FULL


class TestDelivery:
    def test_a_message_arrives_as_one_of_sqs_does_and_is_deleted(
        self, world: World, queue: TestQueue, handler: Handler
    ) -> None:
        attributes = {"region": "shanghai", "raw": {"base64": "AAE="}}
        (sent,) = queue.send("one", tags=["new", "paid"], attributes=attributes)
        sent_ms = world.clock.now_ms()
        world.settle()

        ((record,),) = world.batches
        assert record.pop("receiptHandle")
        no_lists: dict[str, Any] = {"stringListValues": [], "binaryListValues": []}
        assert record.pop("cirrusmq")["tags"] == ["new", "paid"]  # all of it: test_function_records
        assert record == {
            "messageId": sent["id"],
            "body": "one",
            "attributes": {
                "ApproximateReceiveCount": "1",
                "SentTimestamp": str(sent_ms),
                "ApproximateFirstReceiveTimestamp": str(sent_ms),
                "SenderId": "alice",
            },
            "messageAttributes": {
                "region": {"stringValue": "shanghai", "dataType": "String", **no_lists},
                "raw": {"binaryValue": "AAE=", "dataType": "Binary", **no_lists},
                "TAGS": {"stringValue": "new,paid", "dataType": "String", **no_lists},
            },
            "md5OfBody": sent["body_md5"],
            "eventSource": "cirrusmq",
            "eventSourceARN": "arn:aws:cirrusmq:local:alice:orders",
            "awsRegion": "local",
        }
        assert queue.counts() == {}
        assert world.executions == []

    def test_only_its_named_failures_come_again_after_the_visibility_timeout(
        self, world: World, make_queue: MakeQueue, handler: Handler
    ) -> None:
        queue = make_queue(invoke=INVOKE, visibility_timeout_seconds=300)
        handler.fails = lambda record: (
            record["body"] == "two" and record["attributes"]["ApproximateReceiveCount"] == "1"
        )
        queue.send("one", "two", "three")
        Schedules(world).pass_seconds(400)

        assert Counter(handler.bodies) == {"one": 1, "two": 2, "three": 1}
        first, again = handler.times["two"]
        assert 300_000 <= again - first < 303_000
        assert queue.counts() == {}

    def test_retries_are_on_time_by_the_queues_policy(
        self, world: World, make_queue: MakeQueue, handler: Handler
    ) -> None:
        retry = {"policy": "custom", "waits": [5, 60, 600]}
        queue = make_queue("dead")
        queue = make_queue(
            invoke=INVOKE, retry=retry, dead_letter={"queue": "dead", "max_receives": 4}
        )
        handler.fails = lambda record: True
        queue.send("one")
        schedules = Schedules(world)
        schedules.pass_seconds(2_000)

        times = handler.times["one"]
        waits = [later - before for before, later in pairwise(times)]
        assert [round(wait / 1000) for wait in waits] == [5, 60, 600]
        assert TestQueue(queue.client, "dead").bodies() == ["one"]
        assert sum(schedules.started.values()) == 2  # five seconds were slept out

    def test_delays_are_on_time(self, world: World, queue: TestQueue, handler: Handler) -> None:
        begun_ms = world.clock.now_ms()
        queue.send("later", delay_seconds=7_200)
        queue.send("sooner", delay_seconds=900)
        queue.send("now")
        Schedules(world).pass_seconds(8_000)

        late = {body: times[0] - begun_ms for body, times in handler.times.items()}
        assert handler.bodies == ["now", "sooner", "later"]
        assert 900_000 <= late["sooner"] < 902_000
        assert 7_200_000 <= late["later"] < 7_202_000

    @pytest.mark.parametrize(
        "failures",
        [None, [{"itemIdentifier": "Msg-of-nobody"}], [{"itemIdentifier": None}], "all"],
        ids=["raise", "unknown id", "no text", "no list"],
    )
    def test_a_batch_fails_as_a_whole_if_the_function_fails_or_is_not_understood(
        self, world: World, make_queue: MakeQueue, failures: object
    ) -> None:
        queue = make_queue(invoke=INVOKE, visibility_timeout_seconds=3_600)

        def handle(event: dict[str, Any]) -> Any:
            if failures is None:
                raise RuntimeError("a bug")
            return {"batchItemFailures": failures}

        world.handle = handle
        queue.send("one", "two")
        world.settle()
        assert len(world.batches) == 1
        assert queue.counts() == {"inactive": 2}

    @pytest.mark.parametrize("answer", [None, {}, {"batchItemFailures": []}, "done", 204])
    def test_a_batch_succeeds_if_the_answer_names_no_failure(
        self, world: World, queue: TestQueue, answer: Any
    ) -> None:
        world.handle = lambda event: answer
        queue.send("one", "two")
        world.settle()
        assert queue.counts() == {}

    def test_an_unanswered_message_comes_again_after_its_lease(
        self, world: World, make_queue: MakeQueue, handler: Handler
    ) -> None:
        queue = make_queue(invoke=INVOKE | {"timeout_seconds": 100})

        def hang(event: dict[str, Any]) -> Any:
            world.clock.pass_seconds(101)
            world.handle = handler

        world.handle = hang
        begun_ms = world.clock.now_ms()
        queue.send("one")
        Schedules(world).pass_seconds(200)
        (again_ms,) = handler.times["one"]
        assert 110_000 <= again_ms - begun_ms < 112_000

    def test_a_group_gets_matching_messages(
        self, world: World, topic: TestTopic, handler: Handler
    ) -> None:
        group = topic.subscribe("group", invoke=INVOKE, filter={"tags": ["paid"]})
        topic.publish("one", tags=["paid"])
        topic.publish("two")
        world.settle()
        assert handler.bodies == ["one"]
        arn = world.batches[0][0]["eventSourceARN"]
        assert arn == "arn:aws:cirrusmq:local:alice:news/group"
        assert group.show()["counts"]["active"] == group.show()["counts"]["inactive"] == 0

    def test_an_ordered_queue_keeps_its_order_through_failures(
        self, world: World, make_queue: MakeQueue, handler: Handler
    ) -> None:
        queue = make_queue(invoke=INVOKE | {"batch": 1}, ordered=True)
        handler.fails = lambda record: (
            record["body"] == "1" and int(record["attributes"]["ApproximateReceiveCount"]) < 3
        )
        for number in range(4):
            queue.send(str(number), group="a")
        Schedules(world).pass_seconds(300)
        assert handler.bodies == ["0", "1", "1", "1", "2", "3"]
        assert world.batches[0][0]["attributes"]["MessageGroupId"] == "a"

    def test_redriven_dead_letters_wake_it_as_well(
        self, world: World, make_queue: MakeQueue, handler: Handler
    ) -> None:
        make_queue("dead")
        queue = make_queue(
            invoke=INVOKE,
            visibility_timeout_seconds=1,
            dead_letter={"queue": "dead", "max_receives": 1},
        )
        handler.fails = lambda record: True
        queue.send("one")
        Schedules(world).pass_seconds(30)
        assert handler.bodies == ["one"]
        handler.fails = lambda record: False
        TestQueue(queue.client, "dead").start("redrive")
        world.settle()
        assert handler.bodies == ["one", "one"]
        assert queue.counts() == {}

    @pytest.mark.parametrize("failing", ["none", "by id", "by receipt"])
    def test_two_messages_of_one_id_in_a_batch_are_settled_each(
        self, world: World, make_queue: MakeQueue, handler: Handler, failing: str
    ) -> None:
        """Two receivers of a queue give one message up into one dead-letter queue."""
        dead = make_queue("dead", partitions=1)
        queue = make_queue("orders", dead_letter={"queue": "dead", "max_receives": 5})
        for name in ("r1", "r2"):
            queue.add_receiver(name)
        world.clock.pass_seconds(60)
        queue.send("x")
        world.settle()
        for name in ("r1", "r2"):
            queue.act("dead-letter", *queue.receive(receiver=name))
        batches: list[list[dict[str, Any]]] = []

        def handle(event: dict[str, Any]) -> Any:
            records = event["Records"]
            batches.append(records)
            if failing == "none" or len(batches) > 1:
                return None
            name = {"by id": "messageId", "by receipt": "receiptHandle"}[failing]
            return {"batchItemFailures": [{"itemIdentifier": records[0][name]}]}

        world.handle = handle
        dead.patch(invoke=INVOKE)
        Schedules(world, sweeps=True).pass_seconds(400)
        again = {"none": [], "by id": [1, 1], "by receipt": [1]}[failing]
        assert [len(function_batch) for function_batch in batches] == [2, *again]
        assert dead.counts() == {}

    def test_a_queue_without_it_wakes_nobody_and_costs_no_more(
        self, world: World, make_queue: MakeQueue
    ) -> None:
        make_queue("with", invoke=INVOKE)
        plain = make_queue("without")
        runs: list[str] = []
        run = world._run_function

        def note(name: str, event: Any, chain: tuple[str, ...] = ()) -> Any:
            runs.append(name)
            return run(name, event, chain)

        world._run_function = note  # type: ignore[method-assign]
        for pump in world._pumps:
            pump._run = note
        assert world.write_units(lambda: plain.send("one")) == 1
        world.settle()
        assert runs == ["cirrusmq-send", "cirrusmq-meter"]


class TestBound:
    def test_a_backlog_wakes_as_many_as_may_work_on_it(
        self, world: World, make_queue: MakeQueue, handler: Handler
    ) -> None:
        queue = make_queue(partitions=1)
        for _ in range(4):
            queue.send(*map(str, range(16)))
        world.settle()
        queue.patch(invoke=INVOKE | {"max_concurrency": 3, "batch": 4})
        source = queue.show()["id"]
        at_once: list[int] = []

        def handle(event: dict[str, Any]) -> Any:
            at_once.append(len(slots.read(world.core, source).held))
            # Those that were woken run beside this one.
            waiting, world.invoked = world.invoked, type(world.invoked)()
            for role, invoked in waiting:
                world.run(role, invoked)
            return handler(event)

        world.handle = handle
        sweep(world, after_seconds=60)
        assert len(handler.bodies) == 64
        assert max(at_once) == 3
        assert slots.read(world.core, source).held == frozenset()

    def test_a_message_put_while_all_slots_are_held_waits_for_no_sweep(
        self, world: World, make_queue: MakeQueue, handler: Handler
    ) -> None:
        queue = make_queue(invoke=INVOKE | {"max_concurrency": 1})
        source, held = queue.show()["id"], Invoke(function="handler", max_concurrency=1)
        # A worker that has just looked for the last time, and found nothing.
        slot = slots.take(world.core, source, held)
        assert slot is not None
        queue.send("one")
        world.settle()
        assert handler.bodies == []
        with shares.calling(world.core, "alice", 900_000) as share:
            last = worker._Worker(world.core, source, 0, world.clock.now_ms() + 900_000, share)
            slots.release(world.core, slot)
            following = last._next("empty")
            assert following is not None
            assert last._hand_out(following) == "empty"
        assert handler.bodies == ["one"]

    def test_no_call_begins_beside_a_possibly_running_one(
        self, world: World, make_queue: MakeQueue, handler: Handler
    ) -> None:
        """Its connection broke at once."""
        queue = make_queue(invoke=INVOKE | {"max_concurrency": 1, "batch": 1})
        call, broken = world.core.call, [Called(error="the connection broke", unknown=True)]

        def breaking(arn: str, event: bytes, seconds: float) -> Called:
            return broken.pop() if broken else call(arn, event, seconds)

        world.core = replace(world.core, call=breaking)
        begun_ms = world.clock.now_ms()
        queue.send("one")
        queue.send("two")
        Schedules(world).pass_seconds(200)
        assert broken == []
        assert sorted(handler.bodies) == ["one", "two"]
        assert min(min(times) for times in handler.times.values()) >= begun_ms + 60_000

    def test_no_call_may_outlast_its_slot_or_its_leases(
        self, world: World, queue: TestQueue, handler: Handler
    ) -> None:
        """The store is slow once: a claim takes 40 s of the slot's 90 and the lease's 70."""
        call, slow = world.core.store._call, ["once"]

        def slowly(operation: str, request: dict[str, Any]) -> Any:
            answer = call(operation, request)
            if operation == "UpdateItem" and request["Key"]["pk"]["S"].startswith("Q#") and slow:
                slow.pop()
                world.clock.pass_seconds(40)
            return answer

        held_seconds: list[float] = []

        def handle(event: dict[str, Any]) -> Any:
            (slot,) = [item for item in world.items("messages") if "held_until" in item]
            parcels = [item for item in world.items("messages") if item["pk"]["S"][:2] == "Q#"]
            leases_ms = [int(each["N"]) for parcel in parcels for each in parcel["v"]["L"]]
            for until_ms in (int(slot["held_until"]["N"]), max(leases_ms)):
                held_seconds.append((until_ms - world.clock.now_ms()) / 1_000)
            return handler(event)

        world.core.store._call = slowly  # type: ignore[method-assign]
        world.handle = handle
        queue.send("one")
        world.settle()
        assert slow == []
        assert handler.bodies == ["one"]
        assert world.batches[0][0]["attributes"]["ApproximateReceiveCount"] == "1"
        assert 60 <= min(held_seconds) <= max(held_seconds) <= 90
        assert queue.counts() == {}

    def test_a_worker_woken_by_an_alarm_counts_on_no_other_if_clocks_differ(self) -> None:
        """It was woken on time, and by its own clock it looks early."""
        world = World(shared_caches=False)
        due_ms = world.clock.now_ms() + 70_000
        assert slots.set_alarm(world.core, "source", due_ms)
        assert not slots.set_alarm(world.core, "source", due_ms)
        world.clock.pass_seconds(69)
        assert slots.set_alarm(world.core, "source", due_ms)
        world.engine.close()

    @pytest.mark.parametrize("rewinds", [1, 2])
    def test_a_group_rewound_during_a_call_keeps_its_bound(
        self, world: World, topic: TestTopic, handler: Handler, rewinds: int
    ) -> None:
        """The workers that a rewind wakes count the call that began before it."""
        group = topic.subscribe("group", invoke=INVOKE | {"max_concurrency": 1, "batch": 1})
        begun = format_time(world.clock.now_ms() - 10_000)
        running, at_once, left = 0, [], rewinds

        def handle(event: dict[str, Any]) -> Any:
            nonlocal running, left
            running += 1
            at_once.append(running)
            if left:
                left -= 1
                path = f"{group.path}/rewind"
                assert group.client.post(path, {"to": begun}).status == 202
                world.settle()
            running -= 1
            return handler(event)

        world.handle = handle
        for body in "abc":
            topic.publish(body)
        Schedules(world, sweeps=True).pass_seconds(300)
        assert max(at_once) == 1
        assert left == 0
        assert {*handler.bodies} == {*"abc"}
        assert len(handler.bodies) > 3

    def test_a_slot_of_a_dead_worker_ends_by_its_time(
        self, world: World, make_queue: MakeQueue, handler: Handler
    ) -> None:
        queue = make_queue(invoke=INVOKE | {"max_concurrency": 1, "timeout_seconds": 200})
        source = queue.show()["id"]
        dead = Invoke(function="handler", max_concurrency=1, timeout_seconds=200)
        assert slots.take(world.core, source, dead) is not None
        queue.send("one")
        schedules = Schedules(world, sweeps=True)
        schedules.pass_seconds(225)
        assert handler.bodies == []
        schedules.pass_seconds(120)
        assert handler.bodies == ["one"]

    @pytest.mark.parametrize("of_group", [False, True])
    def test_calls_of_a_killed_stack_hold_no_slot_when_it_starts_again(
        self,
        world: World,
        make_queue: MakeQueue,
        topic: TestTopic,
        handler: Handler,
        *,
        of_group: bool,
    ) -> None:
        dead = Invoke(function="handler", max_concurrency=1, timeout_seconds=200)
        given = INVOKE | {"max_concurrency": 1, "timeout_seconds": 200}
        make_queue("without_function").send("stays")
        if of_group:
            owner = topic.subscribe("group", invoke=given).show()["id"]
        else:
            queue = make_queue(invoke=given)
            owner = queue.show()["id"]
        assert slots.take(world.core, owner, dead) is not None
        assert topic.publish("one") if of_group else queue.send("one")
        Schedules(world, sweeps=True).pass_seconds(61)
        assert handler.bodies == []

        release_slots(world.core)

        sweep(world)
        assert handler.bodies == ["one"]

    def test_a_lowered_bound_counts_the_running_calls(self, world: World, queue: TestQueue) -> None:
        source = queue.show()["id"]
        for _ in range(3):
            assert slots.take(world.core, source, Invoke(function="handler")) is not None
        assert slots.take(world.core, source, Invoke(function="handler", max_concurrency=3)) is None


class TestLoss:
    def test_a_lost_wake_up_is_found_by_the_sweep(
        self, world: World, queue: TestQueue, handler: Handler
    ) -> None:
        queue.send("one")
        world.run_stream("fan_out")
        world.run_stream("meter")
        assert [role for role, _ in world.invoked] == ["call"]
        world.invoked.clear()
        Schedules(world, sweeps=True).pass_seconds(61)
        assert handler.bodies == ["one"]

    def test_a_wake_up_by_the_release_before_is_passed_on(
        self, world: World, queue: TestQueue, handler: Handler
    ) -> None:
        queue.send("one")
        world.run_stream("fan_out")
        (_, event) = world.invoked.popleft()
        world.run("push", event)  # as that release invoked it
        world.run("push", {"action": "wait", "wake": queue.show()["id"]})  # its executions
        assert [role for role, _ in world.invoked] == ["call", "call"]
        world.settle()
        assert handler.bodies == ["one"]

    def test_an_unlisted_function_is_not_called_and_nothing_is_lost(
        self, world: World, queue: TestQueue, handler: Handler, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.delitem(world.core.settings.invoke_functions, "handler")
        queue.send("one")
        world.settle()
        assert world.batches == []
        assert queue.counts() == {"active": 1}

    def test_of_a_deleted_queue_nothing_is_handed_over(
        self, world: World, queue: TestQueue, handler: Handler
    ) -> None:
        queue.send("one")
        queue.client.delete(queue.path)
        world.settle()
        assert world.batches == []

    def test_a_chain_of_workers_has_an_end(
        self, world: World, make_queue: MakeQueue, handler: Handler
    ) -> None:
        queue = make_queue(invoke=INVOKE | {"timeout_seconds": 840})
        queue.send("one")
        event = {"invoke": {"source": queue.show()["id"], "hops": worker.HOPS}}
        world.handle = lambda given: world.clock.pass_seconds(800)
        queue.send("two", delay_seconds=1)
        world.run("call", event)
        assert [each for each in world.invoked if "invoke" in each[1]] == []


class Play:
    """Messages for a function that fails one of them once.

    During its first calls more are sent, and the workers that are woken meanwhile run beside it.
    """

    def __init__(self, crash_at: int | None = None) -> None:
        self.world = World(seed=crash_at or 0)
        self.queue = TestQueue(self.world.client("alice", admin=True), "orders")
        invoke = INVOKE | {"max_concurrency": 2, "batch": 2, "timeout_seconds": 20}
        attributes = {"invoke": invoke, "partitions": 1, "visibility_timeout_seconds": 5}
        assert self.queue.client.put(self.queue.path, attributes).status == 201
        self.done: Counter[str] = Counter()
        self.running = self.most_running = self.sent_beside = 0
        self.world.handle = self._handle
        self.crashes = Crashes(self.world, "call", crash_at)

    def violations(self) -> list[str]:
        """The promises that are broken in the end."""
        for body in "abcdef":
            self.queue.send(body)
        self.queue.send("late", delay_seconds=40)
        Schedules(self.world, sweeps=True).pass_seconds(300)
        found = []
        beside = {f"beside {number + 1}" for number in range(self.sent_beside)}
        if missing := {*"abcdef", "late", *beside} - self.done.keys():
            found.append(f"never done: {sorted(missing)}")
        if counts := self.queue.counts():
            found.append(f"left: {counts}")
        if self.most_running > 2:
            found.append(f"{self.most_running} at once")
        if slots.read(self.world.core, self.queue.show()["id"]).held:
            found.append("a slot is held")
        self.world.engine.close()
        return found

    def _handle(self, event: dict[str, Any]) -> Any:
        self.running += 1
        self.most_running = max(self.running, self.most_running)
        if self.sent_beside < 4:
            self.sent_beside += 1
            self.queue.send(f"beside {self.sent_beside}")
            self.world.run_stream("fan_out")
        waiting, self.world.invoked = self.world.invoked, type(self.world.invoked)()
        for role, invoked in waiting:
            self.world.run(role, invoked)
        failed = []
        for record in event["Records"]:
            first = record["attributes"]["ApproximateReceiveCount"] == "1"
            if record["body"] == "b" and first:
                failed.append({"itemIdentifier": record["messageId"]})
            else:
                self.done[record["body"]] += 1
        self.running -= 1
        return {"batchItemFailures": failed}


@pytest.mark.few(1)
@pytest.mark.parametrize("step", [5, pytest.param(1, marks=pytest.mark.long)])
def test_a_worker_dying_at_any_call_loses_nothing_and_exceeds_no_bound(step: int) -> None:
    at = 0
    while True:
        play = Play(crash_at=at)
        assert play.violations() == [], at
        if play.crashes.crashed_ms is None:
            break
        at += step
    assert at > 40


def _a_slot_is_kept_for_ever(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(slots, "release", lambda core, slot: None)
    patch.setattr(slots, "MARGIN_SECONDS", 1_000_000)


def _nobody_comes_back_for_what_is_delayed(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(rounds, "look", lambda *given: SourceLook(answer=Nothing(), oldest_ms=None))
    patch.setattr(visits, "wake", lambda core, source_id: None)


@pytest.mark.few(3)
@pytest.mark.parametrize(
    "plant",
    [
        trigger_plants.what_a_function_names_is_deleted,
        trigger_plants.what_is_done_stays,
        trigger_plants.slots_that_are_held_are_taken,
        _a_slot_is_kept_for_ever,
        _nobody_comes_back_for_what_is_delayed,
    ],
)
def test_a_planted_fault_is_noticed(
    plant: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    plant(monkeypatch)
    assert Play().violations() != []
