"""Which capacity is cheaper: auto scaling played over the units of each minute."""

from __future__ import annotations

import boto3
import pytest
from moto import mock_aws

from cirrusmq_local.commands import prices
from cirrusmq_local.commands.advice import Bounds, advise, scaled
from cirrusmq_local.commands.advising import least_units
from cirrusmq_local.commands.estimate import kind_units
from cirrusmq_local.commands.metered import Event, events, from_account, mean_size, units_by_minute

BOUNDS = Bounds(least=10, limit=4_000)
FIRST_MINUTE = 29_400_000  # the begin of a day


def minutes_at(rate: float, minutes: int) -> list[float]:
    """Units of each minute at so many a second."""
    return [rate * 60] * minutes


def test_on_demand_and_provisioned_cost_the_same_at_29_percent_of_use() -> None:
    assert round(100 * prices.BREAK_EVEN) == 29
    dear = prices.provisioned_per_million(prices.WRITE_UNIT_HOUR, prices.BREAK_EVEN)
    assert dear == pytest.approx(prices.WRITE_UNITS_PER_MILLION)
    reads = prices.provisioned_per_million(prices.READ_UNIT_HOUR, prices.BREAK_EVEN)
    assert reads == pytest.approx(prices.READ_UNITS_PER_MILLION)


def test_a_steady_load_is_held_at_its_target() -> None:
    held = scaled(minutes_at(70, 24 * 60), BOUNDS, FIRST_MINUTE)
    assert held.unit_hours == 24 * 100


def test_capacity_goes_up_after_two_minutes_of_throttled_excess() -> None:
    held = scaled(minutes_at(70, 60), BOUNDS, FIRST_MINUTE)
    assert held.throttled == 2 * 60 * (70 - 10)
    assert scaled(minutes_at(70, 60), Bounds(least=80, limit=4_000)).throttled == 0


def test_a_short_burst_is_taken_from_unused_capacity() -> None:
    # 10 a second, of which 4 go unused for an hour: five minutes of all 10 are kept at most.
    calm = minutes_at(6, 60)
    assert scaled([*calm, 60 * 60.0], BOUNDS).throttled == 0
    assert scaled([*calm, 60 * 60.0 + 1], BOUNDS).throttled == 1


def test_capacity_goes_down_after_a_quarter_of_an_hour_and_not_for_nothing() -> None:
    peak, after = minutes_at(700, 60), 5 * 60
    calm = scaled([*peak, *minutes_at(7, after)], BOUNDS, FIRST_MINUTE)
    assert calm.unit_hours == 1_000 + 1_000 + 4 * 10
    # Without any use there is no figure that auto scaling could go by.
    silent = scaled([*peak, *minutes_at(0, after)], BOUNDS, FIRST_MINUTE)
    assert silent.unit_hours == 6 * 1_000


def test_capacity_goes_down_four_times_a_day_and_then_once_an_hour() -> None:
    waves = [*minutes_at(700, 5), *minutes_at(7, 25)] * 48
    bounded = scaled(waves, BOUNDS, FIRST_MINUTE)
    hourly = scaled([*minutes_at(700, 5), *minutes_at(7, 55)] * 24, BOUNDS, FIRST_MINUTE)
    # Each hour has a peak, and is paid for it.
    assert bounded.unit_hours == hourly.unit_hours == 24 * 1_000
    rare = scaled([*minutes_at(700, 5), *minutes_at(7, 4 * 60 - 5)] * 6, BOUNDS, FIRST_MINUTE)
    assert rare.unit_hours == 6 * (1_000 + 3 * 10)


def test_steady_hours_are_cheaper_provisioned_and_a_few_peaks_on_demand() -> None:
    day = {FIRST_MINUTE + minute: (60 * 300.0, 60 * 50.0) for minute in range(24 * 60)}
    steady = advise(day, (10, 10), (10, 10))
    assert (steady.cheaper, steady.hours) == ("provisioned", 24)
    assert steady.used == pytest.approx(0.7, abs=0.01)
    assert steady.provisioned == pytest.approx(steady.on_demand * prices.BREAK_EVEN / 0.7, rel=0.05)
    peaks = {minute: used for minute, used in day.items() if minute % (12 * 60) < 5}
    peaked = advise(peaks, (10, 10), (10, 10))
    assert peaked.cheaper == "on-demand"
    assert peaked.used < prices.BREAK_EVEN


def test_a_hardly_used_stack_is_cheaper_on_demand() -> None:
    assert advise({FIRST_MINUTE: (30.0, 5.0)}, (10, 10), (10, 10)).cheaper == "on-demand"


def entry(kind: str, minute: int, count: int, size: int, **more: int) -> dict[str, object]:
    numbers = {"minute": minute, "count": count, "bytes": size, **more}
    return {"M": {"kind": {"S": kind}} | {name: {"N": str(n)} for name, n in numbers.items()}}


def test_the_meters_counts_are_read_without_kept_messages() -> None:
    item = {
        "records": {
            "L": [
                entry("sent", 7, 4, 400),
                entry("kept", 7, 1_000, 1_000_000),
                entry("rewindable", 7, 9, 0),
                entry("delivered", 8, 2, 200, attempts=3),
            ]
        }
    }
    found = list(events([item, {"counters": {"M": {}}}]))
    assert found == [Event(7, "sent", 4, 400, False), Event(8, "delivered", 2, 200, True)]
    assert mean_size(found) == 100


def test_units_of_a_minute_are_those_of_its_messages() -> None:
    costs = kind_units(1_000, 1)
    found = [
        *(Event(7, kind, 10, 10_000, False) for kind in ("sent", "received", "deleted")),
        Event(8, "delivered", 2, 2_000, True),
        Event(9, "deleted", -1, -1_000, False),
    ]
    units = units_by_minute(found, costs)
    assert units[7] == (30.0, 5.0)
    assert units[8] == (2 * costs["posted"][0], 2 * costs["posted"][1])
    assert units[9] == (0.0, 0.0)


def test_a_batch_is_cheaper_for_each_of_its_messages() -> None:
    single, batch = kind_units(100, 1), kind_units(100, 16)
    assert set(single) == {"sent", "received", "deleted", "published", "delivered", "posted"}
    for kind, (written, _) in single.items():
        assert 0 < batch[kind][0] < written


def test_the_records_of_an_account_are_scanned(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-central-1")
    with mock_aws():
        client = boto3.client("dynamodb")
        client.create_table(
            TableName="usage",
            BillingMode="PAY_PER_REQUEST",
            AttributeDefinitions=[{"AttributeName": "pk", "AttributeType": "S"}],
            KeySchema=[{"AttributeName": "pk", "KeyType": "HASH"}],
        )
        record = {"records": {"L": [entry("sent", 7, 4, 400)]}}
        client.put_item(TableName="usage", Item={"pk": {"S": "a"}, **record})
        client.put_item(TableName="usage", Item={"pk": {"S": "b"}, "counters": {"M": {}}})
        assert list(events(from_account("usage"))) == [Event(7, "sent", 4, 400, False)]
        with pytest.raises(SystemExit):
            list(from_account("nothing"))


def test_the_least_capacity_is_the_templates() -> None:
    assert least_units("Messages") == (10, 10)
    assert least_units("Directory", "Usage") == (5 + 5, 5 + 5)
