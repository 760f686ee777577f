"""What a million messages cost with everything in them, reckoned another way."""

from __future__ import annotations

from pathlib import Path
from statistics import median

import pytest

from bench.counted import bill, cost, months, own_lives
from bench.counted.cost import USED_AT_BEST, sqs_gathered_dollars
from cirrusmq_local.commands import prices


def test_the_whole_of_single_messages_is_within_its_goal() -> None:
    """By the units and calls of the page: 3 writes, half a read, two calls of 25 and 45 ms."""
    lines = months.whole_dollars(months.singles(), used=USED_AT_BEST, direct=True)
    write, read = 0.00065 / 3_600 / 0.7, 0.00013 / 3_600 / 0.7
    functions = 2 * 0.20e-6 + 0.070 * 0.25 * 0.0000133334
    assert sum(lines.values()) == pytest.approx(
        (3 * write + 0.5 * read + functions) * 1e6, rel=0.02
    )
    assert sum(lines.values()) <= 1.50


def test_behind_the_api_calls_and_their_log_are_added() -> None:
    lines = months.whole_dollars(months.singles(), used=None, direct=False)
    direct = months.whole_dollars(months.singles(), used=None, direct=True)
    logged = 2 * 120e-9 * (0.50 + 12 * 0.15 * 0.03) * 1e6
    difference = sum(lines.values()) - sum(direct.values())
    assert difference == pytest.approx(2.00 + logged, rel=0.001)
    full = months.whole_dollars(months.singles(), used=None, direct=False, access="full")
    assert full["logs"] - lines["logs"] == pytest.approx(logged * 130 / 120, rel=0.001)


def test_messages_received_by_sixteen_save_calls_and_not_writes() -> None:
    usage = months.gathered()
    assert usage.calls / usage.messages == 17 / 16
    assert usage.write_units / usage.messages == pytest.approx(3, rel=0.05)
    lines = months.whole_dollars(usage, used=None, direct=False)
    by_hand = 3 * 0.625 + 17 / 16 * 1.20
    assert sum(lines.values()) == pytest.approx(by_hand, rel=0.08)
    # By SQS: a request to send, and of ten messages one to receive and one to delete.
    assert sqs_gathered_dollars() == pytest.approx(12 / 10 * 0.40)


def test_terms_change_tables_and_the_time_of_functions_alone() -> None:
    lines = months.whole_dollars(months.singles(), used=USED_AT_BEST, direct=True)
    off = months.with_terms(lines, prices.RESERVED_OFF[3])
    assert off["writes"] == pytest.approx(0.23 * lines["writes"])
    assert off["Lambda calls"] == lines["Lambda calls"]


@pytest.mark.long
def test_a_small_month_pays_the_least_units_of_provisioned_tables() -> None:
    least = months.least_units_dollars()
    assert least == pytest.approx(720 * (20 * 0.00013 + 20 * 0.00065))
    lines = months.whole_dollars(months.singles(), used=USED_AT_BEST, direct=True)
    idle = sum(bill.idle_dollars(free=True).values())
    assert months.month_dollars(lines, 1, least=least) > idle + least
    large = months.month_dollars(lines, 1_000, least=least)
    assert large == pytest.approx(idle + 1_000 * sum(lines.values()), rel=0.001)


@pytest.mark.long
def test_the_page_has_the_counted_costs() -> None:
    page = (Path(__file__).parents[2] / "infra/manual/costs.md").read_text(encoding="utf-8")
    for name, count, theirs in months.ROWS:
        usage = count()
        found = []
        for _, used, direct, off in months.WAYS:
            lines = months.whole_dollars(usage, used=used, direct=direct)
            found.append(sum((months.with_terms(lines, off) if off else lines).values()))
        cells = [f"{each:,.2f}" for each in (*found, theirs)]
        assert f"| {name} | {' | '.join(cells)} |" in page
    lines = months.whole_dollars(months.singles(), used=None, direct=True)
    whole = [f"{months.month_dollars(lines, each):,.2f}" for each in months.MONTHS]
    assert f"| direct, on demand | {' | '.join(whole)} |" in page


def test_groups_and_functions_are_reckoned_by_hand_too() -> None:
    """Ordered: a parcel, a claim, a lease of its group, its end. Fair: as a plain one."""
    ordered, plain = months.grouped(ordered=True), months.singles()
    assert ordered.write_units == pytest.approx(4, abs=0.1)
    assert months.grouped(fair=True).write_units == pytest.approx(plain.write_units, abs=0.1)
    handed = months.handed()
    seconds = 0.1 * 0.25 + 0.025 * (0.5 + 0.25 + 0.25)
    assert handed.gb_seconds == pytest.approx(seconds)
    assert handed.calls == 1
    assert handed.write_units == pytest.approx(7, abs=0.1)


@pytest.mark.long
def test_the_page_has_the_rows_with_a_dearer_service() -> None:
    """Without a term: behind the API or direct, on demand or at 70 %."""
    cheaper = {
        (case.kind.short, case.messages)
        for case in cost.cases()
        if min(case.usage.total(used, direct=True) for used in (None, USED_AT_BEST)) < case.theirs
    }
    large = next(each for each in cost.WORKLOADS if each.count == 16 and each.size == 65_536)
    batches = next(each for each in cost.WORKLOADS if each.count == 16 and each.size == 1_024)
    # Large ones in batches, and small ones in batches to many URLs.
    assert {kind for kind, name in cheaper if name == cost._name(large)} == {
        kind.short for kind in cost.KINDS
    }
    others = {each for each in cheaper if each[1] != cost._name(large)}
    assert others == {("a topic, URLs", cost._name(batches))}


def test_in_the_callers_own_process_no_function_is_paid() -> None:
    shown = []
    for name, count, theirs in months.OWN_ROWS:
        usage = count()
        assert usage.calls == 0
        assert usage.invocations <= 16 * 3 / 1_000
        found = [sum(months.own_dollars(usage, *way[1:]).values()) for way in months.OWN_WAYS]
        cells = " | ".join(f"{each:,.2f}" for each in (*found, theirs))
        shown.append(f"| {name} | {cells} |")
    page = (Path(__file__).parents[2] / "infra/manual/costs.md").read_text()
    for row in shown:
        assert row in page, row


@pytest.mark.long
def test_the_cost_grows_with_the_number_of_looks() -> None:
    usual, often = own_lives.idle_units(0.34), own_lives.idle_units(0.09)

    assert usual <= 150
    assert often == pytest.approx(usual * 0.34 / 0.09, rel=0.15)
    assert median(own_lives.delays(0.09, 60)) < 0.055
    page = (Path(__file__).parents[2] / "infra/manual/costs.md").read_text()
    assert f"${own_lives.month_dollars(usual):,.2f}" in page
    assert f"${own_lives.month_dollars(often):,.2f}" in page
