"""Units of messages that a client sends, receives and deletes in its own process.

As `lives`, of the same code on the same engine, with a process in the place of functions. Once a
minute a process sends and receives by the URL, for each queue: `url_month_dollars`.
"""

from __future__ import annotations

from collections.abc import Iterator
from statistics import median
from typing import Any

from msgspec.structs import replace

from cirrusmq.base.formats import WRITTEN_FORMAT
from cirrusmq_in_process.allowances import Allowances
from cirrusmq_in_process.conditions import Conditions
from cirrusmq_in_process.process import Process
from cirrusmq_in_process.wiring import Told, make_core
from cirrusmq_local.commands import prices
from cirrusmq_local.engine import EngineClient
from cirrusmq_local.testing import World

from ..drawing.tables import show
from .lives import Workload
from .polls import LONGEST_SECONDS, POLL_SECONDS

MONTH_SECONDS = 30 * 86_400
CALL_SECONDS = 0.025
LOOK_SECONDS = (0.34, 0.17, 0.09, 0.05)
TRIALS = 200


class OwnClient:
    """A client in a process beside a world, which may call the queue `work`."""

    def __init__(
        self, *, partitions: int = 4, look_seconds: float | None = None, client: Any = None
    ) -> None:
        """client: of DynamoDB; without it the engine's."""
        self.world = World(in_process=True, shared_caches=False)
        self.world.own = None
        self.alice = self.world.client("alice")
        self.alice.put("/queues/work", {"partitions": partitions})
        tables = self.world.tables
        told = Told("local", tables.directory, tables.messages, "alice", WRITTEN_FORMAT)
        core = make_core(
            client or EngineClient(self.world.engine),
            self.world.clock,
            told,
            look_seconds=look_seconds,
            randomness=self.world.random,
            in_parallel=lambda call, values: [call(value) for value in values],
        )
        self.core = replace(core)
        allowances = Allowances(lambda: 0.0)
        for right in ("send", "receive"):
            allowances.grant("work", right, 0.0)
        caller = ("alice", "CK1")
        self.process = Process(Conditions(core, caller, allowances, WRITTEN_FORMAT))

    def call(self, kind: str, body: dict[str, Any]) -> dict[str, Any]:
        """The answer to a call that is made in the process; RuntimeError if it is not."""
        begun = self.process.begin("POST", f"/queues/work/messages{kind}")
        answered = None if begun is None else begun.answer(body)
        if answered is None or answered[0] >= 400:
            raise RuntimeError(f"it is not done here: {answered}")
        told: dict[str, Any] = answered[1]
        return told

    def send(self, messages: list[dict[str, Any]]) -> None:
        """Send messages in one call."""
        self.call("", {"messages": messages})


def own_life(workload: Workload, *, apart: bool = False, turns: int = 10) -> tuple[float, float]:
    """(write units, read units) of a batch that is received by the call that deletes the last one.

    apart: sent one by one, in a queue of four partitions.
    """
    client = OwnClient(partitions=4 if apart else 1)
    done: list[str] = []

    def turn() -> None:
        nonlocal done
        parts = workload.messages()
        for part in [[each] for each in parts] if apart else [parts]:
            client.send(part)
        answer = client.call("/receive", {"max": 16, "wait_seconds": 0, "delete": done})
        if len(answer["messages"]) != workload.count:
            raise RuntimeError(f"not all was received: {answer}")
        done = [message["receipt"] for message in answer["messages"]]

    def take_turns() -> None:
        for _ in range(turns):
            turn()

    turn()
    written, read = client.world.units(take_turns)
    return written / turns, read / turns


def url_month_dollars() -> float:
    """A month of the send and the receive that a busy process makes by the URL each minute."""
    calls = 2 * MONTH_SECONDS / 60
    time = calls * CALL_SECONDS * prices.HOT_GB * prices.LAMBDA_GB_SECOND
    return time + calls * prices.LAMBDA_REQUESTS_PER_MILLION / prices.MILLION


def idle_units(look_seconds: float) -> float:
    """Read units of a poll of 20 s without any message, in a queue of four partitions."""
    client = OwnClient(look_seconds=look_seconds)
    request = {"wait_seconds": POLL_SECONDS}
    client.call("/receive", request)
    return max(client.world.units(lambda: client.call("/receive", request))[1] for _ in range(3))


def delays(look_seconds: float, trials: int = TRIALS) -> Iterator[float]:
    """Seconds by which messages ended polls late, sent at random moments by another process."""
    client = OwnClient(look_seconds=look_seconds)
    clock, draw = client.world.clock, client.world.random
    sleep = clock.sleep
    for _ in range(trials):
        due_ms = clock.now_ms() + round(1_000 * draw.uniform(0, LONGEST_SECONDS))
        sent = False

        def sleep_and_send(seconds: float, due_ms: int = due_ms) -> None:
            nonlocal sent
            left_ms = due_ms - clock.now_ms()
            if not sent and left_ms <= 1_000 * seconds:
                sent = True
                sleep(left_ms / 1_000)
                client.alice.send("work", "x")
                seconds -= left_ms / 1_000
            if seconds > 0:
                sleep(seconds)

        clock.sleep = sleep_and_send  # type: ignore[method-assign]
        received: list[dict[str, Any]] = []
        while not received:
            received = client.call("/receive", {"wait_seconds": POLL_SECONDS})["messages"]
        clock.sleep = sleep  # type: ignore[method-assign]
        client.call("/delete", {"receipts": [each["receipt"] for each in received]})
        yield (clock.now_ms() - due_ms) / 1_000


def month_dollars(units_of_a_poll: float) -> float:
    """A month of polls, one behind the other, that get nothing."""
    polls = MONTH_SECONDS / POLL_SECONDS
    return polls * units_of_a_poll * prices.READ_UNITS_PER_MILLION / prices.MILLION


def run() -> None:
    """Print the price of one consumer that waits in its own process, by how often it looks."""
    rows = []
    for look_seconds in LOOK_SECONDS:
        units = idle_units(look_seconds)
        late = sorted(delays(look_seconds))
        dollars = month_dollars(units)
        used = prices.provisioned_per_million(prices.READ_UNIT_HOUR, 0.7)
        provisioned = dollars * used / prices.READ_UNITS_PER_MILLION
        rows.append(
            (
                f"{look_seconds:g}",
                units,
                median(late),
                late[int(0.95 * len(late))],
                f"{dollars:,.2f}",
                f"{provisioned:,.2f}",
            )
        )
    show(
        f"One consumer that waits in its own process: polls of {POLL_SECONDS} s, four partitions",
        [
            "look_seconds",
            "units of an idle poll",
            "a message comes after, median s",
            "19 of 20 s",
            "on demand, $ a month",
            "70 %, $ a month",
        ],
        rows,
    )
    print(f"\nBeside it, each minute, a send and a receive by the URL: ${url_month_dollars():.2f}")
    print("a month for each queue of a busy process, at direct URLs.")
