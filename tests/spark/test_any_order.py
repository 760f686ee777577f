"""Whatever the order, the repetitions and the omissions of nights: ledger, months, documents.

The judge is plain Python over the records themselves. It shares nothing with the job.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from tests.spark.bills import (
    Item,
    card_with,
    documents,
    invoices,
    use,
    whole,
    window,
)
from tests.spark.job_runs import DAY_MS, HOUR_MS, Jobs, rows_in
from tests.spark.transforms.frames import ms

from cirrusmq_reports import folding
from cirrusmq_reports.times import iso_time

FIRST_MS, LAST_MS = ms("2026-10-01 00:00"), ms("2026-11-19 00:00")
CARD = (
    "    free_each_month:\n      sent: 40\n"
    "    tiers:\n      sent:\n        - above: 90\n          price: 20000\n"
)
FREE, ABOVE, LOW, HIGH = 40, 90, Decimal("0.03"), Decimal("0.02")
"""The allowance and the tier, and the prices of one message, as CARD and `card` have them."""
Place = tuple[str, str, str, int]


def text_of(at_ms: int) -> str:
    return iso_time(at_ms).removesuffix("Z")


@dataclass
class World:
    """Records, the exports that showed them, and runs in a random order."""

    random: random.Random
    folder: Path
    written: list[tuple[int, Item]] = field(default_factory=list)
    exports: list[tuple[Path, list[str]]] = field(default_factory=list)
    """Exports with the options that they need."""
    seam: list[Path] = field(default_factory=list)
    """The last export of a table that another one took the place of."""

    def live(self) -> None:
        """A service's records, some of them the difference of a repeated batch."""
        for number in range(70):
            at_ms = self.random.randrange(FIRST_MS, LAST_MS - DAY_MS)
            count = self.random.randrange(1, 9)
            self._write(f"e{number}", at_ms, count)
            if self.random.random() < 0.2:
                later_ms = at_ms + self.random.randrange(2 * HOUR_MS)
                self._write(f"e{number}#2", at_ms, -self.random.randrange(count), later_ms)
        self.written.sort(key=lambda each: each[0])

    def _write(self, key: str, used_ms: int, count: int, written_ms: int = 0) -> None:
        minute_ms = used_ms - used_ms % 60_000
        # A batch and its repetition are of the same resource.
        place = random.Random(minute_ms)
        item = use(
            key,
            text_of(minute_ms),
            count,
            written=text_of((written_ms or used_ms) // 1000 * 1000),
            account=place.choice("ab"),
            resource=f"queue:{place.choice('pq')}",
            kind=place.choice(("sent", "sent", "received")),
        )
        self.written.append(((written_ms or used_ms) // 1000 * 1000, item))

    def export(self) -> None:
        """Whole exports and windows that cover all; sometimes of a restored table at the end."""
        cuts = sorted(self.random.sample(range(5, 49), 5))
        times = [FIRST_MS + day * DAY_MS for day in (*cuts, 49)]
        restored = self.random.random() < 0.4
        table, follow = "Usage", list[str]()
        for place, at_ms in enumerate(times):
            if place and self.random.random() < 0.5 and table == "Usage":
                self._window(times[place - 1], at_ms)
            else:
                self._whole(at_ms, table, follow)
            if restored and place == len(times) - 2:
                # The callers are stopped, and the old table is exported once more.
                self._whole(at_ms, "Usage", [])
                self.seam = [self.exports[-1][0]]
                table, follow = "Usage-restored", ["--follow", "Usage-restored"]
        kept = self.exports[-1]
        extra = [each for each in self.exports if self.random.random() < 0.4]
        self.exports = [*self.exports, *extra, kept]

    def _between(self, since_ms: int, at_ms: int) -> list[Item]:
        return [item for written_ms, item in self.written if since_ms <= written_ms < at_ms]

    def _whole(self, at_ms: int, table: str, follow: list[str]) -> None:
        alive = self._between(at_ms - 40 * DAY_MS, at_ms)
        # TTL is late by up to two days.
        late = self._between(at_ms - 42 * DAY_MS, at_ms - 40 * DAY_MS)
        late = [item for item in late if self.random.random() < 0.5]
        made = whole(self.folder / f"x{len(self.exports)}", text_of(at_ms), [*late, *alive], table)
        self.exports.append((made, follow))

    def _window(self, since_ms: int, at_ms: int) -> None:
        gone = self._between(since_ms - 40 * DAY_MS, at_ms - 40 * DAY_MS)
        made = window(
            self.folder / f"x{len(self.exports)}",
            text_of(since_ms),
            text_of(at_ms),
            self._between(since_ms, at_ms),
            gone,
        )
        self.exports.append((made, []))

    def orders(self) -> Iterator[list[tuple[Path, list[str]]]]:
        """The exports in a random order, some of them together; the followed table comes last."""
        left = list(self.exports)
        self.random.shuffle(left)
        left.sort(key=lambda each: bool(each[1]))
        while left:
            count = self.random.randint(1, 3)
            yield left[:count]
            left = left[count:]

    def recount(self) -> Counter[Place]:
        """What was used: account, resource, kind and hour → count."""
        counts: Counter[Place] = Counter()
        for _, item in self.written:
            entry = {
                name: next(iter(v.values())) for name, v in item["records"]["L"][0]["M"].items()
            }
            hour = int(entry["minute"]) // 60
            counts[entry["account"], entry["resource"], entry["kind"], hour] += int(entry["count"])
        return Counter({place: count for place, count in counts.items() if count})


def owed(counts: Counter[Place], account: str, month: str) -> Decimal:
    """An account's exact charge of a month."""
    total = Decimal(0)
    begin, end = (ms(f"2026-{number}-01 00:00") for number in _ENDS[month])
    for kind in ("sent", "received"):
        volume = sum(
            count
            for (whose, _, what, hour), count in counts.items()
            if (whose, what) == (account, kind) and begin <= hour * HOUR_MS < end
        )
        if kind == "received":
            total += volume * Decimal("0.0000002")
        else:
            total += max(0, min(volume, ABOVE) - FREE) * LOW + max(0, volume - ABOVE) * HIGH
    return total


_ENDS = {"2026-10": ("10", "11"), "2026-11": ("11", "12")}


@pytest.mark.long
@pytest.mark.parametrize("seed", range(1, 10))
def test_bills_are_the_same_after_any_order(
    tmp_path: Path, jobs: Jobs, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    # So that exports show records of months whose parts became one.
    monkeypatch.setattr(folding, "FOLD_DAYS", 2)
    output = tmp_path / "out"
    world = World(random.Random(seed), tmp_path)
    world.live()
    world.export()
    card = card_with(tmp_path, end=CARD)
    card.write_text(card.read_text().replace("sent: 0.40", "sent: 30000.00", 1))

    waiting: list[tuple[Path, list[str]]] = []
    for together in [*world.orders(), []]:
        asked = [*waiting, *together]
        options = {option for _, given in asked for option in given}
        paths = [path for path, _ in asked]
        if not paths:
            break
        # A table is followed together with the last export of the one before it.
        paths += world.seam if options else []
        follow = ["--follow", "Usage-restored"] if options else []
        ended = jobs.bill(output, paths, *follow, card=card)
        # Windows that do not join yet are refused, and given again with the next ones.
        assert ended.code in (0, 2), ended.errors
        assert (
            ended.code == 0 or "no export shows" in ended.errors or "whole export" in ended.errors
        )
        waiting = asked if ended.code else []
    assert waiting == []

    counts = world.recount()
    for table in ("ledger", "usage"):
        assert _summed(rows_in(output, table).collect()) == counts
    for account in "ab":
        made = documents(output, account)
        october = owed(counts, account, "2026-10").quantize(Decimal("0.01"), "ROUND_HALF_UP")
        assert [(each["number"], Decimal(each["total"])) for each in made] == (
            [(f"INV-{account}-000001", october)] if october else []
        )
        for each in made:
            assert sum(Decimal(line["charge"]) for line in each["lines"]) == Decimal(each["total"])
        open_months = [each for each in invoices(output, account) if not each["closed"]]
        exact = owed(counts, account, "2026-11")
        lines = [line for each in open_months for line in each["lines"]]
        shown = sum(Decimal(line["amount"]) for line in lines if line["kind"] != "rounding")
        carried = Decimal(0) if october else owed(counts, account, "2026-10")
        assert shown == exact + carried


def _summed(rows: list[Any]) -> Counter[Place]:
    counts: Counter[Place] = Counter()
    for row in rows:
        hour = int(row["hour"].timestamp()) // 3_600
        counts[row["account"], row["resource"], row["kind"], hour] += row["count"]
    return Counter({place: count for place, count in counts.items() if count})
