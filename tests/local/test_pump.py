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

    def pump(self, run: Callable[[str, Any], Any] | None = None, **changes: Any) -> Pump:
        function = run or self.reader.run
        return Pump(make_source(**changes), self.engine, function, self.park, self.clock)

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


def test_a_pump_goes_on_from_the_end_of_the_last_one(stand: Stand) -> None:
    stand.put("a")
    stand.pump().step()
    stand.put("b")
    stand.pump().step()
    assert stand.reader.batches == [["a"], ["b"]]


def test_a_batch_under_way_at_a_crash_comes_again(stand: Stand) -> None:
    stand.put("a")

    def crash(name: str, event: Any) -> Any:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        stand.pump(crash).step()
    stand.pump().step()
    assert stand.reader.batches == [["a"]]


FAILURES: dict[str, tuple[str, str, dict[str, Any], list[str], str, str]] = {
    # What is sent, which fails and how, at which source; the batches, what is done and parked.
    "is halved until the bad record is alone": (
        *("abcd", "raises_on c", {"retries": 1}),
        *(["abcd", "ab", "cd", "c", "c", "d"], "abd", "c"),
    ),
    "is tried again whole without bisecting": (
        *("ab", "raises_on b", {"bisect": False, "retries": 2}),
        *(["ab", "ab", "ab"], "", "ab"),
    ),
    "brings nothing again that was done": (
        *("abcd", "reports c", {"bisect": False, "retries": 1}),
        *(["abcd", "cd"], "ab", "cd"),
    ),
    "counts if reported only where the source asks for it": (
        *("a", "reports a", {"reports_failures": False}),
        *(["a"], "", ""),
    ),
    "is not tried again when it is too old": (
        *("a", "raises_on a", {"max_age_seconds": 60}),
        *(["a"], "", "a"),
    ),
}


@pytest.mark.parametrize("failure", FAILURES)
def test_a_failed_batch(stand: Stand, failure: str) -> None:
    sent, fails, source, batches, done, parked = FAILURES[failure]
    stand.put(*sent)
    stand.clock.sleep(3_600)
    how, name = fails.split()
    setattr(stand.reader, how, {name})
    stand.pump(**source).step()
    assert ["".join(batch) for batch in stand.reader.batches] == batches
    assert ("".join(stand.reader.done), "".join(stand.parked)) == (done, parked)


def test_a_failed_record_is_done_once_the_function_recovers(stand: Stand) -> None:
    stand.put("a", "b")
    stand.reader.reports = {"b"}
    recovering = stand.reader.run

    def run(name: str, event: Any) -> Any:
        answer = recovering(name, event)
        stand.reader.reports = set()
        return answer

    stand.pump(run).step()
    assert stand.reader.done == ["a", "b"]
    assert stand.parked == []


@pytest.mark.parametrize("answer", [{"itemIdentifier": ""}, {}, {"itemIdentifier": "unknown"}])
def test_a_failure_of_an_unknown_record_fails_the_batch(stand: Stand, answer: Any) -> None:
    stand.put("a")
    calls: list[int] = []

    def run(name: str, event: Any) -> Any:
        calls.append(len(event["Records"]))
        return {"batchItemFailures": [answer]}

    stand.pump(run, retries=3).step()
    assert calls == [1] * 4
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


def test_a_running_pump_notices_new_records(stand: Stand) -> None:
    join = run_in_thread(stand.pump())
    stand.put("a")
    assert stand.reader.called.wait(5)
    stand.clock.stop()
    join()
    assert stand.reader.done == ["a"]


def test_a_pump_with_only_unwanted_records_looks_less_often(
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

    stand.pump(run, bisect=False, retries=1).step()
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
        stand.pump(run).step()
    assert stand.parked == []
    assert stand.engine.load_position(f"{TABLE}:reader") == 0
    stand.engine.close()
