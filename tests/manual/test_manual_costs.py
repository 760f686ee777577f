"""The calculator reckons as the bench does, from what the bench counts."""

from __future__ import annotations

import json
import re
import shutil
import subprocess

import pytest
from tests.manual.pages import MANUAL

from bench.counted import bill, calculator, cost, months
from bench.counted.lives import BATCH_1_KB, SINGLE_1_KB, SINGLE_64_KB
from cirrusmq_local.commands import prices

COSTS = json.loads((MANUAL / "costs.json").read_text("utf-8"))


def test_its_figures_equal_the_counted_ones() -> None:
    assert COSTS["prices"] == calculator.price_list()
    by_name = {case["name"]: case for case in COSTS["cases"]}
    queues, topics = cost.KINDS[:2], cost.KINDS[2:]
    counted = [
        *calculator.counted(queues, (SINGLE_1_KB, BATCH_1_KB, SINGLE_64_KB)),
        *calculator.counted(topics, (SINGLE_1_KB,)),
    ]
    for case in counted:
        assert by_name[case["name"]] == case
    assert len(by_name) == len(cost.KINDS) * len(cost.WORKLOADS)


def test_the_cost_of_a_waiting_consumer_is_counted() -> None:
    assert COSTS["waiting"] == calculator.month_of_waiting()


@pytest.mark.skipif(shutil.which("node") is None, reason="Node is not on this machine")
def test_its_sums_are_those_of_the_bench() -> None:
    program = """
        import { readFileSync } from "node:fs";
        const { bill } = await import("./theme/bill.js");
        const costs = JSON.parse(readFileSync("costs.json", "utf8"));
        const sums = [];
        for (const one of costs.cases) {
          for (const [used, term] of [
            [null, null], [null, "savings plans"], [0.7, null], [0.7, "reserved 3 years"],
          ]) {
            for (const [direct, gigabytes] of [[false, 0], [true, 20]]) {
              const how = { messages: 1e6, used, direct, term, gigabytes };
              const lines = bill(one, costs.prices, how);
              sums.push(Object.values(lines).reduce((sum, each) => sum + each, 0));
            }
          }
        }
        console.log(JSON.stringify(sums));
    """
    run = subprocess.run(
        ["node", "--input-type=module", "-e", program],
        cwd=MANUAL,
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    wanted = [
        dollars(case["use"], used=used, direct=direct, term=term) + kept
        for case in COSTS["cases"]
        for used, term in (
            *((None, None), (None, "savings plans")),
            *((0.7, None), (0.7, "reserved 3 years")),
        )
        for direct, kept in ((False, 0.0), (True, 20 * (30 * 0.10 + 0.25 + 0.20)))
    ]
    assert json.loads(run.stdout) == pytest.approx(wanted, abs=0.0001)


@pytest.mark.skipif(shutil.which("node") is None, reason="Node is not on this machine")
def test_its_choices_are_existing_terms() -> None:
    text = (MANUAL / "theme/calculator.js").read_text("utf-8")
    named = set(re.findall(r'"(savings plans|reserved [^"]+)"\]', text))
    assert named == set(COSTS["prices"]["terms"]) == set(months.TERMS)


def test_a_longer_wait_costs_more_in_exports_and_storage_alone() -> None:
    """A million messages a month of 1.3 KB that wait for ten days: 0.43 GB at any time."""
    usage = cost.Usage(messages=1, write_units=3, read_units=0.5, calls=3, gb_seconds=0)
    minute, days = (
        months.whole_dollars(usage, used=None, direct=True, open_seconds=seconds)
        for seconds in (60, 10 * 86_400)
    )
    more = {name: days[name] - minute[name] for name in days if days[name] != minute[name]}
    assert set(more) == {"exports", "storage, backup"}
    assert more["exports"] == pytest.approx(0.43 * 30 * 0.10, rel=0.02)
    assert more["storage, backup"] == pytest.approx(0.43 * 0.45, rel=0.02)


def dollars(
    use: dict[str, float], *, used: float | None, direct: bool, term: str | None = None
) -> float:
    """What the bench says of a million such messages."""
    usage = cost.Usage(
        messages=prices.MILLION,
        write_units=use["write_units"] * prices.MILLION,
        read_units=use["read_units"] * prices.MILLION,
        calls=int(use["calls"] * prices.MILLION),
        invocations=(use["functions"] - use["calls"]) * prices.MILLION,
        gb_seconds=use["gb_seconds"] * prices.MILLION,
        puts=use["puts"] * prices.MILLION,
        gets=use["gets"] * prices.MILLION,
    )
    if term is None:
        return usage.total(used, direct=direct)
    lines = months.with_terms(usage.dollars(used), months.TERMS[term])
    return sum(lines.values()) - (lines["HTTP API"] if direct else 0)


def test_the_page_has_the_same_figures() -> None:
    text = (MANUAL / "costs.md").read_text("utf-8")
    row = re.search(r"\| queue, 1 KB, singles \|(.*)\|", text)
    assert row is not None
    *_, ours, direct, _, rival = (float(each) for each in row[1].split("|"))
    name = "a queue: sent, received by the call that deletes the batch before; 1 KB, singles"
    (case,) = (each for each in COSTS["cases"] if each["name"] == name)
    assert dollars(case["use"], used=None, direct=False) == pytest.approx(ours, abs=0.005)
    assert dollars(case["use"], used=None, direct=True) == pytest.approx(direct, abs=0.005)
    assert case["theirs"] == pytest.approx(rival, abs=0.005)


def test_the_page_has_the_rows_of_an_idle_deployment() -> None:
    text = (MANUAL / "costs.md").read_text("utf-8").replace("`", "")
    for name, *figures in bill.idle_rows():
        # The column of metrics is left out: it is 0 in each row.
        dollars_ = [*figures[:4], *figures[5:]]
        row = re.search(rf"^\| {re.escape(name)} \|(.*)\|$", text, re.MULTILINE)
        if row is not None:
            assert [each.strip() for each in row[1].split("|")] == dollars_
    assert len(re.findall(r"^\| (?:defaults|AlarmLevel|least)", text, re.MULTILINE)) == 4
    least = re.search(r"Provisioned tables cost at least \$([\d.]+) a month", text)
    assert least is not None
    assert float(least[1]) == pytest.approx(months.least_units_dollars(), abs=0.005)


def test_the_first_month_is_the_sum_named_on_the_page() -> None:
    text = " ".join((MANUAL / "costs.md").read_text("utf-8").split())
    named = re.search(
        r"first figure is ([\d.]+) .*?, ([\d.]+) .*? and ([\d.]+) for the meter", text
    )
    row = re.search(r"\| API, on demand \| ([\d.]+) \| ", text)
    assert named is not None
    assert row is not None
    lines = months.whole_dollars(months.singles(), used=None, direct=False)
    idle, messages = sum(bill.idle_dollars(free=True).values()), sum(lines.values())
    whole = months.month_dollars(lines, 1)
    assert [float(each) for each in named.groups()] == pytest.approx(
        [idle, messages, whole - idle - messages], abs=0.0006
    )
    assert float(row[1]) == pytest.approx(whole, abs=0.006)
    later = months.month_dollars(lines, 15)
    assert later - idle - 15 * messages == pytest.approx(0, abs=0.006)
