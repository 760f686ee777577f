"""The bench's own arithmetic: prices, queues as others build them, and charts."""

from __future__ import annotations

import re
from functools import cache
from itertools import pairwise
from statistics import median
from xml.etree import ElementTree

import pytest

from bench.__main__ import main
from bench.counted import cost, fair, heat, reads
from bench.counted.designs import (
    AWS_SAMPLE,
    HIDDEN_UNTIL_FILTER,
    INDEX_OF_KEYS,
    INDEX_ON_VISIBILITY,
    Design,
)
from bench.counted.environments import heat_by_environments
from bench.counted.keys import Units
from bench.counted.lives import (
    BATCH_1_KB,
    BATCH_64_KB,
    FULL_64_KB,
    SINGLE_1_KB,
    SINGLE_64_KB,
    SINGLE_64_KB_JSON,
    Requests,
    Workload,
    carried_life,
    metering_units,
    our_life,
    published_life,
    push_invocations,
)
from bench.drawing import svg
from bench.measured import calls, push_parts
from cirrusmq_local.commands import prices
from cirrusmq_local.commands.quotas import KEY_READS, KEY_WRITES

KB = 1_024


# --- cost


@pytest.mark.parametrize(
    ("size", "batches", "dollars"),
    [
        (KB, False, 3 * 0.40),
        (KB, True, 3 * 0.40 / 10),
        (64 * KB, False, 3 * 0.40),
        (64 * KB + 1, False, (2 + 2 + 1) * 0.40),
        (64 * KB, True, (10 + 10 + 1) * 0.40 / 10),
        (256 * KB, True, (16 + 16 + 1) * 0.40 / 4),
    ],
)
def test_sqs_counts_each_64_kb_of_a_request(size: int, batches: bool, dollars: float) -> None:
    assert cost.sqs_dollars(size, batches=batches) == pytest.approx(dollars)


def test_sns_asks_for_publishing_and_its_queues_for_receiving_and_deleting() -> None:
    singles = cost.sns_to_queues_dollars(KB, batches=False, queues=20)
    assert singles == pytest.approx(0.50 + 20 * 2 * 0.40)
    batches = cost.sns_to_queues_dollars(KB, batches=True, queues=20)
    assert batches == pytest.approx(singles / 10)


def test_sns_asks_for_each_delivery_to_a_url_even_of_a_batch() -> None:
    assert cost.sns_to_urls_dollars(KB, batches=False, urls=20) == pytest.approx(0.50 + 12)
    assert cost.sns_to_urls_dollars(KB, batches=True, urls=20) == pytest.approx(0.05 + 12)


def test_ours_adds_up_units_calls_and_time() -> None:
    usage = cost.Usage(
        messages=2,
        write_units=6,
        read_units=1,
        calls=3,
        invocations=1,
        gb_seconds=0.1,
        puts=2,
        gets=3,
    )
    lines = usage.dollars()
    assert lines == pytest.approx(
        {
            "writes": 6 * 0.625 / 2,
            "reads": 0.125 / 2,
            "HTTP API": 3 * 1.00 / 2,
            "S3, KMS": (2 * 5.00 + 3 * 0.40 + 5 * 0.01 * 3.00) / 2,
            "Lambda calls": 4 * 0.20 / 2,
            "Lambda time": 0.1 * 13.3334 / 2,
        }
    )


def test_provisioned_capacity_changes_the_tables_lines_alone() -> None:
    usage = cost.Usage(messages=1, write_units=3, read_units=0.5, calls=3, gb_seconds=0.1)
    on_demand, provisioned = usage.dollars(), usage.dollars(used=0.7)
    # 0.00065 and 0.00013 dollars an hour for a unit a second.
    assert provisioned["writes"] == pytest.approx(3 * 0.00065 / 3_600 * 1e6 / 0.7)
    assert provisioned["reads"] == pytest.approx(0.5 * 0.00013 / 3_600 * 1e6 / 0.7)
    for line in ("HTTP API", "Lambda calls", "Lambda time"):
        assert provisioned[line] == on_demand[line]


def test_direct_urls_save_the_apis_line() -> None:
    usage = cost.Usage(messages=1, write_units=3, read_units=0.5, calls=3, gb_seconds=0.1)
    for used in (None, 0.7):
        assert usage.total(used, direct=True) == pytest.approx(usage.total(used) - 3 * 1.00)


def test_a_single_small_message_is_dearer_than_with_sqs() -> None:
    usage = cost.queue_usage(SINGLE_1_KB, our_life(SINGLE_1_KB), metered=4)
    assert sum(usage.dollars().values()) > 3 * cost.sqs_dollars(KB, batches=False)


def test_a_large_message_costs_as_much_as_its_goal() -> None:
    s3 = Requests()
    usage = cost.carried_usage(SINGLE_64_KB, carried_life(SINGLE_64_KB, s3), 4, s3)
    assert (usage.puts, usage.gets) == (1, 1)
    assert usage.total(direct=True) < 8.5


def test_well_compressible_json_stays_in_the_table() -> None:
    s3 = Requests()
    written, _ = our_life(SINGLE_64_KB_JSON, s3)
    assert s3 == {}
    assert written < 16 + 3


def test_storage_is_paid_to_the_end_of_a_messages_life() -> None:
    in_table, none = cost.storage_dollars(SINGLE_64_KB, None)
    rest, in_s3 = cost.storage_dollars(SINGLE_64_KB, Requests())
    # 65,536 bytes: 4 days at $0.25, or 5 and a half at $0.023, for a gigabyte and 30 days.
    assert in_table == pytest.approx(65.536 * 0.25 * 4 / 30, rel=0.05)
    assert in_s3 == pytest.approx(65.536 * 0.023 * 5.5 / 30, rel=0.05)
    assert none == 0
    assert rest < 0.05


def test_a_push_takes_a_call_of_a_function_for_all_urls_of_a_message() -> None:
    pulled = cost.pulled_usage(SINGLE_1_KB, (0, 0), metered=0)
    pushed = cost.pushed_usage(SINGLE_1_KB, (0, 0), metered=0)
    assert pulled.calls == 41
    assert pushed.calls == 1
    assert pushed.invocations - pulled.invocations == 1


def test_a_push_with_more_posts_takes_more_calls() -> None:
    """64 posts in each at most, of 20 subscriptions with 16 messages each."""
    usage = cost.pushed_usage(BATCH_1_KB, (0, 0), metered=0)
    assert usage.invocations == pytest.approx(1 + 5, abs=0.1)
    one = cost.pushed_usage(SINGLE_1_KB, (0, 0), metered=0)
    waiting = (5 * cost.PUSH_MS + 15 * cost.SHARING_MS + 300 * cost.POSTING_MS) / 1_000
    alone = (cost.PUSH_MS + 19 * cost.SHARING_MS) / 1_000
    assert usage.gb_seconds - one.gb_seconds == pytest.approx((waiting - alone) * prices.PUSH_GB)


def test_a_batch_of_1_mb_is_pushed_by_as_many_calls_as_one_of_16_kb() -> None:
    """It is in an object: the table alone takes 256 KB of a batch, and would refuse it."""
    assert push_invocations(FULL_64_KB) == push_invocations(BATCH_1_KB) == 5


@pytest.mark.parametrize("protocol", ["http", "pull"])
def test_a_refused_batch_is_named_and_not_counted_as_undelivered(protocol: str) -> None:
    with pytest.raises(RuntimeError, match=r"refused 16 messages.*RequestTooLarge"):
        published_life(FULL_64_KB, protocol)


def test_a_topic_with_20_urls_costs_at_most_26_dollars_a_million_on_provisioned_tables() -> None:
    units = published_life(SINGLE_1_KB, "http")
    usage = cost.pushed_usage(SINGLE_1_KB, units, metering_units())
    assert usage.total(cost.USED_AT_BEST, direct=True) <= 26


# --- ours, in the steady state


def test_a_small_message_takes_three_writes_and_half_a_read() -> None:
    assert our_life(SINGLE_1_KB) == (3, 0.5)


@pytest.mark.parametrize("workload", [SINGLE_64_KB, BATCH_64_KB])
def test_large_messages_in_an_object_cost_as_few_units_as_small_ones(
    workload: Workload,
) -> None:
    objects = Requests()
    written, read = our_life(workload, objects)
    assert written <= 4
    assert read == 0.5
    assert objects == {"PutObject": 1, "GetObject": 1}


def test_a_large_message_is_written_once() -> None:
    written, _ = our_life(SINGLE_64_KB)
    assert written == 65 + 3


def test_a_published_message_is_written_once_for_all_subscriptions() -> None:
    one, _ = published_life(SINGLE_64_KB, "pull", 1)
    five, _ = published_life(SINGLE_64_KB, "pull", 5)
    assert five - one == 4 * 3


def test_each_url_of_a_topic_gets_each_message() -> None:
    written, _ = published_life(BATCH_1_KB, "http", 2)
    assert written > 0


# --- queues as others build them


@pytest.mark.parametrize(
    ("design", "small", "large"),
    [
        (INDEX_ON_VISIBILITY, 7, 7 * 65),
        (INDEX_OF_KEYS, 7, 3 * 65 + 4),
        (AWS_SAMPLE, 7, 7 * 65),
        (HIDDEN_UNTIL_FILTER, 3, 3 * 65),
    ],
)
def test_writes_of_a_life_by_hand(design: Design, small: float, large: float) -> None:
    assert design.life(100, 1)[0] == small
    assert design.life(64 * KB, 1)[0] == large


def test_reads_of_the_sample_by_hand() -> None:
    # Six gets, consistent and one of them of nothing, and a query of the index.
    assert AWS_SAMPLE.life(100, 1)[1] == 6 + 0.5


def test_messages_of_a_batch_cost_as_much_as_single_ones() -> None:
    assert INDEX_ON_VISIBILITY.life(100, 16)[0] == 16 * 7


def test_each_further_receive_is_an_update_and_two_writes_of_the_index() -> None:
    assert INDEX_ON_VISIBILITY.life(100, 1, receives=3)[0] == 7 + 2 * 3
    assert HIDDEN_UNTIL_FILTER.life(100, 1, receives=3)[0] == 3 + 2


def test_held_messages_cost_a_filter_and_not_an_index() -> None:
    index, filtered = (
        {count: design.look(count, 100, 16) for count in (100, 1_000)}
        for design in (INDEX_ON_VISIBILITY, HIDDEN_UNTIL_FILTER)
    )
    assert index[1_000] == index[100] == 0.5
    assert filtered[1_000] > 8 * filtered[100]


def test_pages_of_a_look_by_hand() -> None:
    # 16 items of 237 bytes are 3,792; a page that is full is not known to be the last.
    assert HIDDEN_UNTIL_FILTER.look(15, 100, 16) == 0.5
    assert HIDDEN_UNTIL_FILTER.look(16, 100, 16) == 0.5 + 0.5
    # 250 items of 530 bytes take 33 times 4 KB.
    assert AWS_SAMPLE.look(1_000, 100, 16) == 4 * 16.5 + 0.5


def test_a_sweep_costs_nothing_for_idle_queues() -> None:
    assert reads.sweep_units(40) == reads.sweep_units(0)


# --- charts


def test_lines_stand_in_powers_of_ten() -> None:
    chart = svg.draw_lines("T", "x", {"a": [(1, 1), (100, 10)], "b": [(1, 1), (100, 1)]})
    root = ElementTree.fromstring(chart)
    first = root.findall("{*}polyline")[0].attrib["points"]
    (x1, y1), (x2, y2) = (map(float, point.split(",")) for point in first.split())
    assert x1 < x2
    assert y1 > y2
    assert "a: 10" in chart


def test_labels_of_lines_with_a_common_end_do_not_overlap() -> None:
    chart = svg.draw_lines("T", "x", {name: [(1, 1), (10, 5)] for name in "abc"})
    heights = sorted(
        float(y) for y in re.findall(r'class="name s\d" x="[\d.]+" y="([\d.]+)"', chart)
    )
    assert len(heights) == 3
    assert all(below - above >= 16 for above, below in pairwise(heights))


def test_bars_are_as_long_as_their_values() -> None:
    chart = svg.draw_bars("T <&>", {"one": {"a": 100.0, "b": 50.0}, "two": {"a": 1.0}})
    root = ElementTree.fromstring(chart)
    widths = [float(bar.attrib["width"]) for bar in root.findall("{*}rect")]
    assert widths[1] == pytest.approx(widths[0] / 2, abs=0.1)
    assert widths[2] == widths[0]


# --- the command


def test_an_unknown_part_is_refused_with_the_names_of_all(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.argv", ["bench", "speed"])
    assert main() == 2
    assert "units" in capsys.readouterr().err


# --- fair queues


@pytest.mark.long
def test_quiet_groups_wait_no_longer_beside_a_noisy_one() -> None:
    alone, beside = (fair.dwell(fair.Setting(True, backlog, 10, 2)) for backlog in (0, 400))
    assert beside.received > 0.9 * len(beside.seconds)
    assert median(beside.seconds) <= 1.2 * median(alone.seconds)
    assert beside.noisy > 100


# --- the hottest keys


@cache
def busy_topic(protocol: str) -> dict[str, Units]:
    return heat.hottest(protocol, 20, 48)


@pytest.mark.long
@pytest.mark.parametrize("protocol", ["queue", pytest.param("pull", marks=pytest.mark.long)])
def test_no_key_of_a_busy_topic_is_too_hot(protocol: str) -> None:
    for kind, units in busy_topic(protocol).items():
        assert units.writes < KEY_WRITES, kind
        assert units.reads < KEY_READS, kind


def test_a_topic_of_few_partitions_would_be_too_hot() -> None:
    assert heat.hottest("pull", 1, 8)["parcels"].writes > KEY_WRITES


def test_keys_growing_with_environments_stay_within_a_keys_limit() -> None:
    found = {(each.environments, each.key): each for each in heat_by_environments()}
    assert {environments for environments, _ in found} == {100, 1_000, 3_500}
    for each in found.values():
        assert each.units.writes < KEY_WRITES / 2
        assert each.units.reads <= 2_000
    assert found[3_500, "calls of the account"].units.writes == 437.5
    assert found[3_500, "access key"].seconds == 2


@pytest.mark.long
def test_queues_of_a_topic_do_not_heat_the_attributes_of_their_account() -> None:
    pulled, queued = (busy_topic(each)["attributes"] for each in ("pull", "queue"))
    assert queued.reads < pulled.reads + 200


# --- CPU of calls


@pytest.mark.few(1)
@pytest.mark.parametrize(
    ("row", "asked"),
    [
        pytest.param(row, asked, marks=() if asked in (1, 33) else pytest.mark.long)
        for row, asked in zip(calls.ROWS, [1, 3, 2, 4, 33, 1, 3], strict=True)
    ],
)
def test_a_call_is_compared_with_as_many_puts_as_it_asks_the_store(
    row: calls.Row, asked: int
) -> None:
    measured = calls.measure(row, runs=1)
    assert measured.store_calls == asked
    assert measured.ratio == pytest.approx(measured.cpu / (asked * measured.bare))
    assert measured.bare > 0


def test_the_way_to_a_url_is_split_by_the_functions_calls() -> None:
    runs = [
        push_parts.Invocation("cirrusmq-publish", 1.001, 1.004, (("PutItem", 1.002),)),
        push_parts.Invocation("cirrusmq-fan_out", 1.010, 1.020, (("PutItem", 1.012),)),
        push_parts.Invocation("cirrusmq-meter", 1.011, 1.012, (("PutItem", 1.0115),)),
        push_parts.Invocation(
            "cirrusmq-push",
            *(1.018, 1.040, (("UpdateItem", 1.02), ("Query", 1.021), ("UpdateItem", 1.035))),
        ),
    ]

    split = push_parts.parts(push_parts.Message(called=1.0, posted=1.03), runs)

    assert split is not None
    assert [round(1_000 * seconds) for seconds, _ in split] == [2, 8, 8, 12]
    assert [calls for _, calls in split] == [1, 0, 1, 2]
    assert push_parts.parts(push_parts.Message(called=1.0, posted=1.03), 2 * runs) is None
