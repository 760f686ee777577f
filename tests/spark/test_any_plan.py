"""The plan of runs and the issue of documents, in any order of nights: pure, so for many seeds.

`test_any_order.py` has the whole job, for a few. The judge shares nothing with the plan: it knows
all records, and that a month is issued when it is over.
"""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal

import pytest
from tests.spark.job_runs import DAY_MS
from tests.spark.transforms.frames import ms

from cirrusmq_reports.billing_plan import LIFE_MS, due_months, plan_bill
from cirrusmq_reports.billing_state import State
from cirrusmq_reports.documents import CARRIED, NOTE, Series, issue
from cirrusmq_reports.errors import BadInput
from cirrusmq_reports.manifests import DataFile, Export
from cirrusmq_reports.times import iso_month

FIRST_MS, NIGHTS, CLOSE_DAYS = ms("2026-09-01 00:00"), 110, 3
PRICE = Decimal("0.0013")
Record = tuple[int, str, int]
"""Its writing, which is its use as well; its account and its count."""
Document = tuple[str, str, str]


@dataclass
class Bills:
    """What the job keeps, without Spark: the ledger, and what is on documents."""

    state: State = field(default_factory=State)
    ledger: dict[Record, int] = field(default_factory=dict)
    """With the run that took it."""
    carried: dict[str, Decimal] = field(default_factory=dict)
    documents: list[Document] = field(default_factory=list)
    last: dict[str, int] = field(default_factory=dict)

    def run(self, exports: Sequence[Export], shown: set[Record]) -> bool:
        """Whether the exports were taken."""
        try:
            plan = plan_bill(exports, self.state, [], accept_gaps=False)
        except BadInput:
            return False
        now = self.state.sequence + 1
        self.ledger |= {record: now for record in shown if record not in self.ledger}
        used = {iso_month(at_ms) for at_ms, _, _ in self.ledger}
        due, plan = due_months(plan, self.state, used, CLOSE_DAYS, accept_gaps=False)
        closed = dict(self.state.closed)
        if due.closing:
            self._close(due.closing, closed)
            closed = dict.fromkeys([*closed, *due.closing], now)
        self.state = replace(
            self.state,
            sequence=now,
            to_ms=plan.to_ms,
            tables=plan.tables,
            coverage=plan.coverage,
            accepted=plan.accepted,
            closed=closed,
        )
        return True

    def _close(self, months: Sequence[str], closed: dict[str, int]) -> None:
        totals: dict[tuple[str, str, str], Decimal] = defaultdict(Decimal)
        for account, amount in self.carried.items():
            totals[account, "USD", CARRIED] += amount
        for (at_ms, account, count), run in self.ledger.items():
            month = iso_month(at_ms)
            if run > closed.get(month, 0) and (month in months or month in closed):
                group = f"{NOTE}{month}" if month in closed else month
                totals[account, "USD", group] += count * PRICE
        series = Series(prefix="INV", by_account=True, last=self.last, invoices={})
        issued = issue(totals, months, series, "x")
        on = {(each.account, group) for each in issued for group in each.groups}
        self.carried = defaultdict(Decimal)
        for (account, _, group), amount in totals.items():
            if (account, group) not in on:
                self.carried[account] += amount
        for each in issued:
            self.last[each.account] = each.ordinal
            self.documents.append((each.number, each.month, str(each.total)))


def nights_of(drawn: random.Random, records: Sequence[Record]) -> list[tuple[Export, set[Record]]]:
    """Nights whose exports show all of the time: windows, whole ones, and some more of them."""
    cuts = sorted(drawn.sample(range(2, NIGHTS), drawn.randint(4, 12)))
    times = [FIRST_MS + day * DAY_MS + 3_600_000 for day in [1, *cuts, NIGHTS]]
    made = []
    for place, at_ms in enumerate(times):
        before_ms = times[place - 1] if place else None
        is_whole = before_ms is None or (at_ms - before_ms < LIFE_MS and drawn.random() < 0.5)
        since_ms = None if is_whole else before_ms
        from_ms = at_ms - LIFE_MS if since_ms is None else since_ms
        export = Export(
            folder=f"x{place}", table="t", table_id="t", at_ms=at_ms, since_ms=since_ms, files=()
        )
        made.append((export, {each for each in records if from_ms <= each[0] < at_ms}))
    return [*made, *drawn.choices(made, k=drawn.randint(0, 4))]


def recount(records: Sequence[Record], end_ms: int) -> tuple[list[Document], dict[str, Decimal]]:
    """The documents of all months that are over, and what they left for later, by account."""
    documents, left = [], {}
    for account in "ab":
        number, open_amount = 0, Decimal(0)
        for month, over in (("09", "10-04"), ("10", "11-04"), ("11", "12-04"), ("12", "")):
            own = [n for at_ms, who, n in records if who == account and _month(at_ms) == month]
            if not over:
                break
            open_amount += sum(own) * PRICE
            cents = (abs(open_amount) * 100 + Decimal("0.5")) // 1
            if ms(f"2026-{over} 00:00") <= end_ms and cents:
                number += 1
                total = (-cents if open_amount < 0 else cents) / Decimal(100)
                documents.append((f"INV-{account}-{number:06d}", f"2026-{month}", f"{total:.2f}"))
                open_amount = Decimal(0)
        left[account] = open_amount
    return documents, left


def _month(at_ms: int) -> str:
    for month in ("12", "11", "10"):
        if at_ms >= ms(f"2026-{month}-01 00:00"):
            return month
    return "09"


@pytest.mark.parametrize("seeds", [range(200), pytest.param(range(10_000), marks=pytest.mark.long)])
def test_documents_are_the_same_after_any_order(seeds: range) -> None:
    for seed in seeds:
        drawn = random.Random(seed)
        records = [
            (FIRST_MS + drawn.randrange(NIGHTS * DAY_MS), drawn.choice("ab"), drawn.randint(-3, 9))
            for _ in range(drawn.randint(1, 30))
        ]
        # In each time of which an export may show the begin, the service was used.
        records += [(FIRST_MS + day * DAY_MS, "a", 1) for day in range(1, NIGHTS)]
        left = nights_of(drawn, records)
        given = list(left)
        bills = Bills()
        # Bills begin with the service: of a time before the first export nothing is known.
        assert bills.run([left[0][0]], left[0][1])
        while left:
            # What was refused, as it does not join yet, is given again with others.
            taken = drawn.sample(left, min(len(left), drawn.randint(1, 3)))
            taken += drawn.sample(given, drawn.randint(0, 1))
            shown = set().union(*(each for _, each in taken))
            if bills.run([export for export, _ in taken], shown):
                left = [each for each in left if each not in taken]

        documents, carried = recount(records, FIRST_MS + NIGHTS * DAY_MS)
        assert sorted(bills.documents) == documents, seed
        assert sorted(bills.ledger) == sorted(set(records)), seed
        assert {who: bills.carried.get(who, 0) for who in "ab" if bills.documents} == {
            who: amount for who, amount in carried.items() if bills.documents
        }, seed


def test_a_taken_export_is_known_by_its_content() -> None:
    def export(folder: str, digest: str, day: int = 10) -> Export:
        files = (DataFile(f"{folder}/data/1", 5, digest),)
        at_ms = FIRST_MS + day * DAY_MS
        return Export(
            folder=folder, table="t", table_id="t", at_ms=at_ms, since_ms=None, files=files
        )

    first, later = export("a", "x"), export("b", "y", 11)
    taken = State(taken=State().taken_with([first], first.at_ms))
    assert taken.unread([first, later]) == [later]
    # Copied elsewhere it is the same; with other files, whatever its name, it is another.
    assert taken.unread([export("c", "x"), later]) == [later]
    assert taken.unread([export("a", "z"), later]) == [export("a", "z"), later]
    assert taken.unread([first]) == [first], "what is set aside is tried again"
    assert State.of(taken.as_dict()).taken == taken.taken
    many = [export(str(day), str(day), day) for day in range(1, 200)]
    kept = taken.taken_with(many, many[-1].at_ms)
    assert len(kept) == 40
    assert max(kept.values()) == many[-1].at_ms
