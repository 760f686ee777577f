"""`breaker` of a function: how its workers' counts meet, and which of them tries a message.

Everything is in the item `wake` of the owner's slots, which a worker reads when it takes a slot:

    worker 1   2 succeed, 6 fail ── adds         6 fail ── adds: 20, of which 18 failed ── opens it
    worker 2        6 fail ── adds                             4 fail ── adds: it is open ── stops
    a try      nobody tries, and none has failed since it was read ── holds it ── calls ── result

Workers add their first outcomes at once, and later ones each second: successes as soon as failures.
Else many workers that begin together would open it by the few failures of their first calls.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from functools import partial
from typing import Any, NamedTuple

from cirrusmq.base.errors import Unavailable
from cirrusmq.base.names import new_id
from cirrusmq.model.breaker import PART_MS, PARTS, Breaker, Circuit, after_probe, must_open, opened
from cirrusmq.model.invoke import Invoke
from cirrusmq.runtime.core import Core
from cirrusmq.runtime.store import ConditionFailed, Item, key, number_in

ADD_MS = 1_000
"""Longest time for which a worker that ends calls keeps outcomes to itself."""
KEPT_MS = 86_400_000
"""Time without a write after which TTL may remove the state: it is closed then."""
_SUCCEEDED, _FAILED = "s", "f"
"""Prefixes of the counts' names, before the number of their part of the minute."""
_OPEN = ("opened", "probe", "probes", "cause", "probing", "prober")
"""Attributes of a breaker that is open."""
_logger = logging.getLogger(__name__)


class BreakerState(NamedTuple):
    """A function's breaker as its item has it."""

    circuit: Circuit = Circuit()
    probing_ms: int = 0
    """Until when a worker may be trying a message; 0 if none does."""
    prober: str = ""
    """Id of that try."""

    def is_held(self, lapsed_ms: int) -> bool:
        """Returns True if a worker may be trying a message."""
        return self.probing_ms >= lapsed_ms


def read_breaker(item: Item) -> BreakerState:
    """Returns the state in the item `wake`; a closed one without outcomes if it has none."""
    number = partial(number_in, item)
    parts = sorted({int(name[1:]) for name in _counts(item)})
    return BreakerState(
        Circuit(
            opened_ms=number("opened"),
            probe_ms=number("probe"),
            failed_probes=number("probes"),
            error=item.get("cause", {"S": ""})["S"],
            counts=tuple(
                (part, number(f"{_SUCCEEDED}{part}"), number(f"{_FAILED}{part}")) for part in parts
            ),
        ),
        number("probing"),
        item.get("prober", {"S": ""})["S"],
    )


def _counts(item: Item) -> Iterator[str]:
    """Yields the names of the item's counts."""
    return (name for name in item if name[0] in (_SUCCEEDED, _FAILED) and name[1:].isdecimal())


class FunctionBreaker:
    """A worker's part in the breaker of its function, as of its last read or write of it."""

    def __init__(self, core: Core, key: tuple[str, str]) -> None:
        self._core = core
        self._place = key
        """Key of the item `wake`."""
        self._item: Item = {}
        self._state = BreakerState()
        self._own: dict[int, list[int]] = {}
        """Part of a minute -> successes and failures that are not added yet."""
        self._error = ""
        """Why the newest of them failed."""
        self._added_ms = 0

    @property
    def circuit(self) -> Circuit:
        """The state as this worker knows it."""
        return self._state.circuit

    def see(self, item: Item) -> None:
        """Notes the item as it was read."""
        self._item, self._state = item, read_breaker(item)

    def is_open(self, invoke: Invoke) -> bool:
        """Returns True if only one message at a time is handed over."""
        return invoke.breaker is not None and self.circuit.is_open

    def waits(self, invoke: Invoke) -> bool:
        """Returns True if no message is handed over now."""
        if not self.is_open(invoke):
            return False
        return self._core.now_ms() < self.circuit.probe_ms or self.is_tried

    @property
    def is_tried(self) -> bool:
        """True if another worker may be trying a message: it decides how to go on."""
        return self._state.is_held(self._core.lapsed_ms())

    def count(self, breaker: Breaker, succeeded: int, failed: int, error: str) -> None:
        """Counts outcomes of messages; adds them to the others' if a second has passed."""
        own = self._own.setdefault(self._core.now_ms() // PART_MS, [0, 0])
        own[0], own[1] = own[0] + succeeded, own[1] + failed
        self._error = error or self._error
        late = self._core.now_ms() - self._added_ms >= ADD_MS * self._core.clock.scale
        if late or must_open(self._together(), breaker, self._core.now_ms()):
            self.add(breaker)

    def add(self, breaker: Breaker | None) -> None:
        """Adds its outcomes to the others', and opens the breaker if they say so.

        Outcomes that could not be added are lost: the breaker opens later.
        """
        first = self._core.now_ms() // PART_MS - PARTS
        own = {part: each for part, each in self._own.items() if part > first}
        self._own = {}
        if breaker is None or not own or self.circuit.is_open:
            return
        self._added_ms = self._core.now_ms()
        nonce = new_id(self._core.random)
        failed = any(each[1] for each in own.values())
        added = self._add(own, nonce)
        if added and failed and must_open(self.circuit, breaker, self._core.now_ms()):
            self._open(nonce)

    def begin_try(self, hold_ms: int) -> bool:
        """Takes the right to try a message, for `hold_ms` from now. Returns False if it may not.

        A: reads probe = 12:00:04 ── holds it ── fails: probe = 12:00:12, nobody holds it
        B: reads probe = 12:00:04 ─────────────────────────────── refused: it has moved
        """
        now_ms, mine = self._core.now_ms(), new_id(self._core.random)
        self._write(
            "SET probing = :until, prober = :prober, expires_at = :expires",
            "opened = :opened AND probe = :probe"
            " AND (attribute_not_exists(probing) OR probing < :lapsed)",
            {
                ":until": _number(now_ms + hold_ms),
                ":prober": {"S": mine},
                ":opened": _number(self.circuit.opened_ms),
                ":probe": _number(self.circuit.probe_ms),
                ":lapsed": _number(self._core.lapsed_ms()),
                ":expires": _number((now_ms + KEPT_MS) // 1000),
            },
        )
        return self._state.prober == mine

    def end_try(self, error: str | None) -> None:
        """Closes the breaker, or notes why a try failed and when the next one is.

        If this is lost, the next try is when the right to this one ends.
        """
        now_ms, still = self._core.now_ms(), {":prober": {"S": self._state.prober}}
        circuit = after_probe(self.circuit, now_ms, error)
        if not circuit.is_open:
            self._write(f"REMOVE {', '.join(_OPEN)}", "prober = :prober", still)
            return
        self._write(
            "SET probe = :probe, probes = :probes, cause = :cause, expires_at = :expires"
            " REMOVE probing, prober",
            "prober = :prober",
            still
            | {
                ":probe": _number(circuit.probe_ms),
                ":probes": _number(circuit.failed_probes),
                ":cause": {"S": circuit.error},
                ":expires": _number((now_ms + KEPT_MS) // 1000),
            },
        )

    def _together(self) -> Circuit:
        """Returns the counts of all as this worker knows them."""
        counts = {each[0]: each for each in self.circuit.counts}
        for part, (succeeded, failed) in self._own.items():
            _, others, others_failed = counts.get(part, (part, 0, 0))
            counts[part] = (part, others + succeeded, others_failed + failed)
        return Circuit(counts=tuple(counts.values()))

    def _add(self, own: dict[int, list[int]], nonce: str) -> bool:
        """Adds counts, and removes counts of earlier minutes. Adds nothing if it is open.

        sent twice   the answer is lost ── again: its own nonce is there, and nothing is added
        """
        now_ms = self._core.now_ms()
        first = now_ms // PART_MS - PARTS
        values = {
            f":{prefix}{part}": _number(number)
            for part, numbers in own.items()
            for prefix, number in zip((_SUCCEEDED, _FAILED), numbers, strict=True)
            if number
        }
        old = [name for name in _counts(self._item) if int(name[1:]) <= first]
        return self._write(
            "SET counted = :nonce, expires_at = :expires"
            f" ADD {', '.join(f'{name[1:]} {name}' for name in values)}"
            + (f" REMOVE {', '.join(old)}" if old else ""),
            "attribute_not_exists(opened) AND (attribute_not_exists(counted) OR counted <> :nonce)",
            values | {":nonce": {"S": nonce}, ":expires": _number((now_ms + KEPT_MS) // 1000)},
        )

    def _open(self, nonce: str) -> None:
        """Opens it, if nobody has counted or opened it since: the next failure judges again."""
        now_ms = self._core.now_ms()
        circuit = opened(now_ms, self._error)
        self._write(
            "SET opened = :opened, probe = :probe, cause = :cause, expires_at = :expires"
            f" REMOVE {', '.join(_counts(self._item))}",
            "attribute_not_exists(opened) AND counted = :nonce",
            {
                ":opened": _number(circuit.opened_ms),
                ":probe": _number(circuit.probe_ms),
                ":cause": {"S": circuit.error},
                ":nonce": {"S": nonce},
                ":expires": _number((now_ms + KEPT_MS) // 1000),
            },
        )
        if self.circuit.opened_ms == circuit.opened_ms:
            _logger.warning("the breaker of %s opened: %s", self._place[0], circuit.error)

    def _write(self, update: str, condition: str, values: Item) -> bool:
        """Changes the item if the condition holds, and sees the item as it is then.

        Returns False if the store does not answer: messages are handed over all the same.
        """
        request: dict[str, Any] = {
            "TableName": self._core.tables.messages,
            "Key": key(*self._place),
            "UpdateExpression": update,
            "ConditionExpression": condition,
            "ExpressionAttributeValues": values,
            "ReturnValues": "ALL_NEW",
        }
        try:
            self.see(self._core.store.write("UpdateItem", request) or {})
        except ConditionFailed as failed:
            self.see(failed.item or {})
        except Unavailable:
            _logger.warning("outcomes of %s could not be counted", self._place[0])
            return False
        return True


def _number(value: int) -> Item:
    return {"N": str(value)}
