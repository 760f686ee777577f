"""Greenlets of one thread: each goes on when what it waits for has come, and not before."""

from __future__ import annotations

import contextvars
import socket
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from greenlet import greenlet

from cirrusmq_local.cloud.clock import ClockStopped, ScaledClock
from cirrusmq_local.cloud.parallel import AsideBucket, Together
from cirrusmq_local.engine.commits import CommitQueue, Entry
from cirrusmq_local.hub import READ, WRITE, Channel, Hub, Task, current

NEVER = float("inf")
SET = contextvars.ContextVar("SET", default="unset")


@pytest.fixture
def hub() -> Iterator[Hub]:
    with ThreadPoolExecutor(4) as threads:

        def in_thread(work: Callable[[], None]) -> None:
            threads.submit(work)

        made = Hub(in_thread)
        yield made
        made.close()


@pytest.fixture
def pair() -> Iterator[tuple[socket.socket, socket.socket]]:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        yield ours, theirs


def run(hub: Hub, *works: Callable[[], Any]) -> list[Any]:
    """What the works answer; each in a greenlet."""
    tasks = [hub.start(work) for work in works]
    while not all(ended(task) for task in tasks):
        hub.turn(1)
    return [task.outcome() for task in tasks]


def ended(task: Task[Any]) -> bool:
    return task._done


def test_behind_a_turn_a_hub_keeps_no_greenlet(hub: Hub) -> None:
    """A frozen one that keeps its thread's own greenlet crashes the process when that ends."""
    run(hub, current)
    assert not any(isinstance(each, greenlet) for each in vars(hub).values())


def test_a_thread_outside_of_greenlets_has_no_hub(hub: Hub) -> None:
    assert current() is None
    assert run(hub, current) == [hub]
    assert current() is None


class TestGathering:
    def test_items_gathered_in_a_turn_are_done_together(self, hub: Hub) -> None:
        done: list[list[int]] = []
        run(hub, *(lambda number=number: hub.gather(done.append, number) for number in range(4)))
        assert done == [[0, 1, 2, 3]]

    def test_nobody_goes_on_before_it_is_done(self, hub: Hub) -> None:
        seen: list[str] = []

        def gather(name: str) -> None:
            hub.gather(lambda items: seen.append("done"), name)
            seen.append(name)

        run(hub, lambda: gather("a"))
        assert seen == ["done", "a"]

    def test_an_item_coming_meanwhile_joins(self, hub: Hub, pair: Any) -> None:
        ours, theirs = pair
        done: list[list[str]] = []

        def later() -> None:
            channel = Channel(ours)
            hub.wait_for(channel, READ, NEVER)
            hub.gather(done.append, "later")
            hub.forget(channel)

        def first() -> None:
            theirs.send(b"x")
            hub.gather(done.append, "first")

        run(hub, later, first)
        assert done == [["first", "later"]]

    def test_others_are_not_waited_for_without_end(self, hub: Hub) -> None:
        """Something happens in every turn."""
        done: list[int] = []
        task = hub.start(lambda: hub.gather(done.extend, 1))
        until = time.monotonic() + 20
        while not ended(task) and time.monotonic() < until:
            hub.post(lambda: None)
            hub.turn(1)
        assert done == [1]

    def test_an_error_is_raised_in_each(self, hub: Hub) -> None:
        def fail(items: list[int]) -> None:
            raise ValueError(len(items))

        def gather() -> str:
            with pytest.raises(ValueError, match="2"):
                hub.gather(fail, 1)
            return "told"

        assert run(hub, gather, gather) == ["told", "told"]

    def test_writers_in_greenlets_share_a_commit(self, hub: Hub) -> None:
        commits: list[int] = []

        def commit(entries: Sequence[Entry]) -> None:
            commits.append(len(entries))
            for entry in entries:
                entry.result = entry.job("a transaction")

        queue = CommitQueue(commit)
        written = run(hub, *(lambda: queue.submit(lambda given: given) for _ in range(5)))
        assert written == ["a transaction"] * 5
        assert commits == [5]

    def test_writers_in_greenlets_and_threads_are_all_committed(self, hub: Hub) -> None:
        done: list[int] = []

        def commit(entries: Sequence[Entry]) -> None:
            for entry in entries:
                entry.result = entry.job(None)

        queue = CommitQueue(commit)

        def write(number: int) -> None:
            queue.submit(lambda given: done.append(number))

        with ThreadPoolExecutor(4) as threads:
            for number in range(400):
                threads.submit(write, number)
            for start in range(400, 800, 4):
                run(hub, *(lambda number=start + place: write(number) for place in range(4)))
        assert sorted(done) == list(range(800))


class TestTime:
    def test_sleepers_wake_in_the_order_of_their_times(self, hub: Hub) -> None:
        woken: list[float] = []

        def sleep(seconds: float) -> None:
            hub.sleep(seconds, lambda: False)
            woken.append(seconds)

        run(hub, *(lambda seconds=seconds: sleep(seconds) for seconds in (0.06, 0.02, 0.04, 0.0)))
        assert woken == [0.0, 0.02, 0.04, 0.06]

    def test_a_stopped_clock_ends_its_sleepers(self, hub: Hub, tmp_path: Path) -> None:
        clock = ScaledClock(tmp_path / "clock.json")
        tasks = [hub.start(lambda: clock.sleep(3_600)) for _ in range(3)]
        hub.turn(0)
        hub.wake_sleepers()
        hub.turn(0)
        assert not any(ended(task) for task in tasks), "the clock runs"
        clock.stop()
        hub.wake_sleepers()
        hub.turn(0)
        for task in tasks:
            with pytest.raises(ClockStopped):
                task.outcome()


class TestOthers:
    def test_work_in_a_thread_holds_up_no_greenlet(self, hub: Hub) -> None:
        go_on = threading.Event()

        def slow() -> str:
            return hub.aside(lambda: f"{go_on.wait(20)} in {threading.current_thread().name}")

        def quick() -> None:
            go_on.set()

        told, _ = run(hub, slow, quick)
        assert told.startswith("True in ")
        assert threading.current_thread().name not in told

    def test_work_elsewhere_has_the_callers_context(self, hub: Hub) -> None:
        def set_and_read(value: str) -> list[str]:
            SET.set(value)
            elsewhere = [hub.aside(SET.get), *hub.together(lambda _: SET.get(), [1, 2])]
            return [SET.get(), *elsewhere]

        answers = run(hub, lambda: set_and_read("a"), lambda: set_and_read("b"))
        assert answers == [["a"] * 4, ["b"] * 4]
        assert SET.get() == "unset"

    def test_errors_of_work_elsewhere_are_raised(self, hub: Hub) -> None:
        def fail() -> None:
            raise KeyError("elsewhere")

        def call() -> str:
            with pytest.raises(KeyError, match="elsewhere"):
                hub.aside(fail)
            return "told"

        assert run(hub, call) == ["told"]

    def test_calls_side_by_side_answer_in_order_and_gather_as_one(self, hub: Hub) -> None:
        done: list[list[int]] = []

        def call(number: int) -> int:
            hub.gather(done.append, number)
            return number * 10

        assert run(hub, lambda: Together()(call, range(5))) == [[0, 10, 20, 30, 40]]
        assert done == [[0, 1, 2, 3, 4]]
        assert list(Together()(lambda number: number, [1, 2])) == [1, 2], "in threads"

    def test_calls_side_by_side_have_all_ended_when_one_fails(self, hub: Hub) -> None:
        ended: list[int] = []

        def call(number: int) -> None:
            hub.sleep(0.02, lambda: False)
            ended.append(number)
            if number == 0:
                raise ValueError("the first")

        def calls() -> str:
            with pytest.raises(ValueError, match="the first"):
                hub.together(call, range(3))
            return f"{len(ended)} have ended"

        assert run(hub, calls) == ["3 have ended"]

    def test_a_buckets_files_hold_up_no_greenlet(self, hub: Hub) -> None:
        class Bucket:
            def execute(self, operation: str, request: Any) -> dict[str, Any]:
                return {operation: threading.current_thread().name}

        bucket = AsideBucket(Bucket())
        here = threading.current_thread().name
        assert bucket.execute("PutObject", {}) == {"PutObject": here}
        (elsewhere,) = run(hub, lambda: bucket.execute("PutObject", {}))
        assert elsewhere != {"PutObject": here}

    def test_a_wait_given_up_goes_on_without_an_outcome(self, hub: Hub) -> None:
        never = threading.Event()
        waited: list[bool] = []
        slow = hub.start_aside(lambda: never.wait(20))
        hub.start(lambda: waited.append(slow.wait()))
        hub.turn(0)
        slow.give_up()
        hub.turn(0)
        assert waited == [False]
        never.set()


class TestSockets:
    def test_a_greenlet_waits_for_bytes(self, hub: Hub, pair: Any) -> None:
        ours, theirs = pair
        channel = Channel(ours)
        waited: list[bool] = []
        hub.start(lambda: waited.append(hub.wait_for(channel, READ, NEVER)))
        hub.turn(0)
        assert waited == []
        theirs.send(b"x")
        hub.turn(1)
        assert waited == [True]
        hub.forget(channel)

    def test_bytes_without_a_waiter_do_not_wake_it_again_and_again(
        self, hub: Hub, pair: Any
    ) -> None:
        ours, theirs = pair
        channel = Channel(ours)
        theirs.send(b"x")
        assert run(hub, lambda: hub.wait_for(channel, READ, NEVER)) == [True]
        hub.turn(0)  # it is told once more, and looks away
        selected = len(hub._selector.select(0))
        assert selected == 0
        assert run(hub, lambda: hub.wait_for(channel, READ, NEVER)) == [True]
        hub.forget(channel)

    def test_a_wait_is_over_at_its_time_or_when_it_is_left(self, hub: Hub, pair: Any) -> None:
        channel = Channel(pair[0])
        assert run(hub, lambda: hub.wait_for(channel, READ, time.monotonic())) == [False]
        task = hub.start(lambda: hub.wait_for(channel, READ, NEVER))
        hub.turn(0)
        hub.leave(channel)
        hub.turn(0)
        assert task.outcome() is False
        assert run(hub, lambda: hub.wait_for(channel, WRITE, NEVER)) == [True]
        hub.forget(channel)
