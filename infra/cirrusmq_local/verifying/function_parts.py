"""Functions of groups: of ordered and fair queues, of a topic's groups, paused and rewound.

ordered    red1 fails, red2 is left ── 1 s ── red1 ── red2      blue goes on
fair       loud loud loud ──── rate ──── loud      red and blue in between
rewound    m1 m2 m3 ── rewind to m2 ── m2 m3      never more calls at once than allowed
paused     m1 ── pause ── 14 s ── no call ── resume ── m2
"""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from typing import Any, ClassVar

from cirrusmq.base.timestamps import format_time
from cirrusmq_local.judging.check_rates import check_rates
from cirrusmq_local.judging.clients import Client
from cirrusmq_local.judging.pausers import AT_WORK_MS, PAUSE, RESUME, check_pauses
from cirrusmq_local.judging.places import Delivery
from cirrusmq_local.judging.producers import GROUPS
from cirrusmq_local.judging.rewinders import REWIND, ROUTE
from cirrusmq_local.judging.scenario import Scenario
from cirrusmq_local.judging.tracks import Book
from cirrusmq_local.verifying.functions import Functions
from cirrusmq_local.verifying.remote import Service

_TRIES = 60
_ONE_CALL: dict[str, Any] = {"max_concurrency": 1, "batch": 4, "timeout_seconds": 20}


class OrderedFunctions(Functions):
    """An ordered queue: behind a message that fails, the others of its group are left untried."""

    name = "function of an ordered queue"
    attributes: ClassVar[dict[str, Any]] = {**Functions.attributes, "ordered": True}
    groups = GROUPS

    def _judge_more(self, scenario: Scenario, book: Book, calls: int) -> None:
        self.posted.note("ordered", calls, ())  # `check_handing` has looked at the order

    def _fail(self, messages: Sequence[Delivery]) -> tuple[list[str], list[str]]:
        failed: dict[str, str | None] = {}
        behind: list[str] = []
        for each in messages:
            if each.group in failed.values():
                behind.append(each.id)
            elif not self._fails(each.id):
                continue
            failed[each.id] = each.group
        return list(failed), behind


class FairFunctions(Functions):
    """A fair queue: each group's messages come at a rate at most."""

    name = "function of a fair queue"
    attributes: ClassVar[dict[str, Any]] = {**Functions.attributes, "fair": True, "rate": 1}
    groups = ("loud", "loud", "red", "blue")
    send_seconds = 0.5
    max_seconds = 15.0
    """Sends end then, so that the rest is done soon: `loud` is sent at three times its rate."""

    def play(self, seconds: float) -> None:
        """Send for a while, but not for long."""
        super().play(min(seconds, self.max_seconds))

    def _judge_more(self, scenario: Scenario, book: Book, calls: int) -> None:
        quiet = self._scenario(queues={"orders": self._attributes}, quiet=True)
        self.posted.note("fair", calls, check_rates(quiet, book))


class GroupFunctions(Functions):
    """A pull group of a topic."""

    name = "function of a group"
    place = "news/group"
    attributes: ClassVar[dict[str, Any]] = {
        "protocol": "pull",
        "retry": {"policy": "custom", "waits": [1] * 40, "jitter": 0},
    }

    def _make(self, maker: Service) -> None:
        maker.ask("PUT", self._holder(), {})
        super()._make(maker)

    def _holder(self) -> str:
        return f"/topics/{self.remote.prefix}news"

    def _path(self) -> str:
        return f"{self._holder()}/subscriptions/group"

    def _as_scenario(self) -> Scenario:
        return self._scenario(queues={}, subscriptions={"group": self._attributes})


class RewoundFunctions(GroupFunctions):
    """A group that is rewound while its function works."""

    name = "function of a rewound group"
    invoke = _ONE_CALL
    lasts = (0.0, 0.2, 1.0)

    def play(self, seconds: float) -> None:
        """Send for a while, and rewind again and again."""
        over = threading.Event()
        rewinder = threading.Thread(target=self._rewind, args=(seconds / 4, over), daemon=True)
        rewinder.start()
        super().play(seconds)
        over.set()
        rewinder.join()

    def _rewind(self, each_seconds: float, over: threading.Event) -> None:
        client, step = Client("rewinder"), 0
        path = {"topic": "news", "subscription": "group"}
        while not over.wait(each_seconds):
            client.begin(step)
            to_ms = self.remote.stage.now_ms() - 2_000
            body, route = {"to": format_time(to_ms)}, f"POST {ROUTE}/rewind"
            self.remote.http(client, REWIND, self.place, {"to_ms": to_ms}, route, path, body)
            step += 1


class PausedFunctions(Functions):
    """A queue that is paused until a worker that is at it has noticed."""

    name = "function of a paused queue"
    pause_seconds = AT_WORK_MS / 1_000 + 4

    def play(self, seconds: float) -> None:
        """Send for a while; the pause begins early, and may last longer."""
        pauser = threading.Thread(target=self._pause, args=(seconds / 5,), daemon=True)
        pauser.start()
        super().play(seconds)
        pauser.join()

    def _pause(self, after_seconds: float) -> None:
        time.sleep(after_seconds)
        self._change(PAUSE)
        time.sleep(self.pause_seconds)
        self._change(RESUME)

    def _change(self, kind: str) -> None:
        route, body = "PATCH /queues/{queue}", {"paused": kind == PAUSE}
        for number in range(_TRIES):
            client = Client("pauser")
            client.begin(number)
            path = {"queue": self.place}
            if self.remote.http(client, kind, self.place, {}, route, path, body).known:
                return
            time.sleep(1)

    def _judge_more(self, scenario: Scenario, book: Book, calls: int) -> None:
        self.posted.note("paused", calls, check_pauses(scenario, book))
