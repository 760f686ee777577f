"""The stream reaches a function as an event source mapping hands it over."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from cirrusmq_local.cloud import pump as pump_module
from cirrusmq_local.cloud.clock import ClockStopped, ScaledClock
from cirrusmq_local.cloud.pump import LambdaRecord, Pump
from cirrusmq_local.cloud.template import StreamSource
from cirrusmq_local.engine import Engine, TableSpec

TABLE = "Messages"
FAST = 1_000_000.0
"""A scale at which no retry's wait is felt."""


def make_source(**changes: Any) -> StreamSource:
    settings: dict[str, Any] = {
        "function": "reader",
        "table": TABLE,
        "filters": [{"dynamodb": {"Keys": {"pk": {"S": [{"prefix": "L#"}]}}}}],
        "batch_size": 10,
        "window_seconds": 0,
        "retries": 2,
        "max_age_seconds": -1,
        "bisect": True,
        "reports_failures": True,
    }
    return StreamSource(**(settings | changes))


class Reader:
    """A function that notes what it gets, and fails as it is told."""

    def __init__(self) -> None:
        self.batches: list[list[str]] = []
        self.raises_on: set[str] = set()
        self.reports: set[str] = set()
        self.done: list[str] = []
        self.called = threading.Event()

    def run(self, name: str, event: Any) -> Any:
        assert name == "reader"
        self.called.set()
        names = [held["dynamodb"]["Keys"]["sk"]["S"] for held in event["Records"]]
        self.batches.append(names)
        if self.raises_on & set(names):
            raise ValueError("told to fail")
        for name, record in zip(names, event["Records"], strict=True):
            if name in self.reports:
                sequence = record["dynamodb"]["SequenceNumber"]
                return {"batchItemFailures": [{"itemIdentifier": sequence}]}
            self.done.append(name)
        return {"batchItemFailures": []}


class Stand:
    """An engine in memory, a clock, a function, and the pumps between them."""

    def __init__(self, path: Path | None, clock: ScaledClock) -> None:
        self.clock = clock
        self.engine = Engine(path, [TableSpec(TABLE, stream=True)], now_ms=clock.now_ms)
        self.reader = Reader()
        self.parked: list[str] = []

    def put(self, *names: str, prefix: str = "L#") -> None:
        for name in names:
            item = {"pk": {"S": prefix + "1"}, "sk": {"S": name}}
            self.engine.execute("PutItem", {"TableName": TABLE, "Item": item})

    def pump(self, **changes: Any) -> Pump:
        return Pump(make_source(**changes), self.engine, self.reader.run, self.park, self.clock)

    def park(self, source: StreamSource, records: Sequence[LambdaRecord]) -> None:
        self.parked += [record["dynamodb"]["Keys"]["sk"]["S"] for record in records]


@pytest.fixture
def stand(tmp_path: Path) -> Iterator[Stand]:
    made = Stand(None, ScaledClock(tmp_path / "clock.json", FAST))
    yield made
    made.clock.stop()
    made.engine.close()


def test_a_function_gets_the_records_it_wants_in_their_order(stand: Stand) -> None:
    stand.put("a")
    stand.put("other", prefix="Q#")
    stand.put("b", "c")
    stand.pump().step()
    assert stand.reader.batches == [["a", "b", "c"]]


def test_a_batch_is_no_larger_than_its_source_says(stand: Stand) -> None:
    stand.put(*"abcde")
    pump = stand.pump(batch_size=2)
    for _ in range(3):
        pump.step()
    assert stand.reader.batches == [["a", "b"], ["c", "d"], ["e"]]


def test_a_pump_goes_on_where_the_last_one_was_done(stand: Stand) -> None:
    stand.put("a")
    stand.pump().step()
    stand.put("b")
    stand.pump().step()
    assert stand.reader.batches == [["a"], ["b"]]


def test_a_batch_that_was_under_way_at_a_crash_comes_again(stand: Stand) -> None:
    stand.put("a")

    def crash(name: str, event: Any) -> Any:
        raise KeyboardInterrupt

    pump = Pump(make_source(), stand.engine, crash, stand.park, stand.clock)
    with pytest.raises(KeyboardInterrupt):
        pump.step()
    stand.pump().step()
    assert stand.reader.batches == [["a"]]


def test_a_failed_batch_is_halved_until_the_bad_record_is_alone(stand: Stand) -> None:
    stand.put(*"abcd")
    stand.reader.raises_on = {"c"}
    stand.pump(retries=1).step()
    assert stand.reader.batches == [
        ["a", "b", "c", "d"],
        ["a", "b"],
        ["c", "d"],
        ["c"],
        ["c"],
        ["d"],
    ]
    assert stand.reader.done == ["a", "b", "d"]
    assert stand.parked == ["c"]


def test_without_bisecting_the_whole_batch_is_tried_again_then_parked(stand: Stand) -> None:
    stand.put("a", "b")
    stand.reader.raises_on = {"b"}
    stand.pump(bisect=False, retries=2).step()
    assert stand.reader.batches == [["a", "b"]] * 3
    assert stand.parked == ["a", "b"]


def test_what_a_function_is_done_with_does_not_come_again(stand: Stand) -> None:
    stand.put(*"abcd")
    stand.reader.reports = {"c"}
    stand.pump(bisect=False, retries=1).step()
    assert stand.reader.batches == [["a", "b", "c", "d"], ["c", "d"]]
    assert stand.reader.done == ["a", "b"]
    assert stand.parked == ["c", "d"]


def test_a_failed_record_is_done_once_the_function_recovers(stand: Stand) -> None:
    stand.put("a", "b")
    stand.reader.reports = {"b"}
    recovering = stand.reader.run

    def run(name: str, event: Any) -> Any:
        answer = recovering(name, event)
        stand.reader.reports = set()
        return answer

    Pump(make_source(), stand.engine, run, stand.park, stand.clock).step()
    assert stand.reader.done == ["a", "b"]
    assert stand.parked == []


@pytest.mark.parametrize("answer", [{"itemIdentifier": ""}, {}, {"itemIdentifier": "unknown"}])
def test_a_failure_that_names_no_record_fails_the_batch(stand: Stand, answer: Any) -> None:
    stand.put("a")
    calls: list[int] = []

    def run(name: str, event: Any) -> Any:
        calls.append(len(event["Records"]))
        return {"batchItemFailures": [answer]}

    Pump(make_source(retries=3), stand.engine, run, stand.park, stand.clock).step()
    assert calls == [1] * 4
    assert stand.parked == ["a"]


def test_reported_failures_count_only_where_the_source_asks_for_them(stand: Stand) -> None:
    stand.put("a")
    stand.reader.reports = {"a"}
    stand.pump(reports_failures=False).step()
    assert stand.reader.batches == [["a"]]
    assert stand.parked == []


def test_a_record_that_is_too_old_is_not_tried_again(stand: Stand) -> None:
    stand.put("a")
    stand.clock.sleep(3_600)
    stand.reader.raises_on = {"a"}
    stand.pump(max_age_seconds=60).step()
    assert stand.reader.batches == [["a"]]
    assert stand.parked == ["a"]


def test_records_behind_a_parked_one_go_on(stand: Stand) -> None:
    stand.put("a")
    stand.reader.raises_on = {"a"}
    pump = stand.pump()
    pump.step()
    stand.put("b")
    pump.step()
    assert stand.reader.done == ["b"]


def run_in_thread(pump: Pump) -> Callable[[], None]:
    thread = threading.Thread(target=pump.run_until_stopped)
    thread.start()
    return thread.join


def test_a_running_pump_notices_what_comes(stand: Stand) -> None:
    join = run_in_thread(stand.pump())
    stand.put("a")
    assert stand.reader.called.wait(5)
    stand.clock.stop()
    join()
    assert stand.reader.done == ["a"]


def test_a_pump_that_finds_only_what_is_not_wanted_looks_less_often(
    stand: Stand, monkeypatch: pytest.MonkeyPatch
) -> None:
    pauses: list[float] = []
    noted = SimpleNamespace(monotonic=time.monotonic, sleep=pauses.append)
    monkeypatch.setattr(pump_module, "time", noted)
    pump = stand.pump()

    def step(*names: str, prefix: str = "Q#") -> list[float]:
        pauses.clear()
        for name in names:
            stand.put(name, prefix=prefix)
            pump.step()
        return list(pauses)

    assert step(*"abcd") == [0.01, 0.02, 0.04, 0.04]
    assert step("wanted", prefix="L#") == []
    assert step(*"ef") == [0.01, 0.02]
    pump.step()  # nothing came
    assert step("g") == [0.01]
    assert stand.reader.done == ["wanted"]


def test_a_window_lets_records_gather(tmp_path: Path) -> None:
    stand = Stand(None, ScaledClock(tmp_path / "clock.json", 100))
    join = run_in_thread(stand.pump(window_seconds=30))
    stand.put("a")
    stand.put("b", "c")
    assert stand.reader.called.wait(5)
    stand.clock.stop()
    join()
    stand.engine.close()
    assert stand.reader.batches == [["a", "b", "c"]]


def test_a_flush_does_not_wait_for_the_window(tmp_path: Path) -> None:
    stand = Stand(None, ScaledClock(tmp_path / "clock.json"))
    pump = stand.pump(window_seconds=3_600)
    join = run_in_thread(pump)
    stand.put("a", "b")
    stand.put("other", prefix="Q#")
    pump.flush()
    assert stand.reader.batches == [["a", "b"]]
    pump.flush()
    stand.clock.stop()
    join()
    stand.engine.close()
    assert stand.reader.batches == [["a", "b"]]


def test_each_record_gets_all_its_tries_though_others_fail_before_it(stand: Stand) -> None:
    stand.put("a", "b")
    tried: list[str] = []

    def run(name: str, event: Any) -> Any:
        """Fails on each record once."""
        for record in event["Records"]:
            sk = record["dynamodb"]["Keys"]["sk"]["S"]
            tried.append(sk)
            if tried.count(sk) == 1:
                sequence = record["dynamodb"]["SequenceNumber"]
                return {"batchItemFailures": [{"itemIdentifier": sequence}]}
        return None

    source = make_source(bisect=False, retries=1)
    Pump(source, stand.engine, run, stand.park, stand.clock).step()
    assert tried == ["a", "a", "b", "b"]
    assert stand.parked == []


def test_a_stop_while_a_retry_waits_leaves_the_batch_for_later(tmp_path: Path) -> None:
    clock = ScaledClock(tmp_path / "clock.json")
    stand = Stand(None, clock)
    stand.put("a")

    def run(name: str, event: Any) -> Any:
        clock.stop()
        raise ValueError("told to fail")

    with pytest.raises(ClockStopped):
        Pump(make_source(), stand.engine, run, stand.park, clock).step()
    assert stand.parked == []
    assert stand.engine.load_position(f"{TABLE}:reader") == 0
    stand.engine.close()
