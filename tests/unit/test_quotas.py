"""What a rate needs of an account's quotas, counted another way than the command does."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.counted.quotas import Load, fan_out_memory, needs, run, shards, units
from cirrusmq_local.commands import quotas

RATE = 50_000
SINGLES = Load(messages=RATE)
BATCHES = Load(messages=RATE, batch=16)
TOPICS = Load(messages=RATE, batch=16, topics=20, subscriptions=2, urls=1)


def needed(load: Load, quota: quotas.Quota) -> float:
    (found,) = (need.needed for need in needs(load) if need.quota is quota)
    return found


def test_singles_cost_a_write_for_each_of_send_claim_and_delete() -> None:
    assert units(SINGLES)[0] == 3 * RATE
    assert shards(3 * RATE) == 150
    assert needed(SINGLES, quotas.TABLE_WRITES) / quotas.TABLE_WRITES.default == 3.75


@pytest.mark.long
def test_a_send_and_a_deleting_receive_are_two_calls_of_the_api() -> None:
    assert needed(SINGLES, quotas.API_CALLS) == 2 * RATE
    assert needed(BATCHES, quotas.API_CALLS) == 2 * RATE / 16
    assert needed(TOPICS, quotas.API_CALLS) == (1 + 2) * RATE / 16
    assert needed(Load(messages=RATE, direct=True), quotas.API_CALLS) == 0


def test_executions_are_calls_times_their_time_and_the_waiting_ones() -> None:
    busy = RATE * (0.025 + 0.035) + 2 * 150
    assert needed(SINGLES, quotas.CONCURRENCY) == pytest.approx(busy)
    waiting = Load(messages=RATE, waiting=900)
    assert needed(waiting, quotas.CONCURRENCY) == pytest.approx(busy + 900)


def test_the_tightest_quota_comes_first_and_the_nights_jobs_last() -> None:
    found = needs(SINGLES)
    assert found[0].quota is quotas.INVOCATIONS
    assert found[-1].quota is quotas.JOB_CPUS
    assert [need.share for need in found[:-1]] == sorted(
        (need.share for need in found[:-1]), reverse=True
    )


def test_fan_out_gets_the_memory_for_its_copies() -> None:
    assert fan_out_memory(SINGLES, units(SINGLES)[0]) == 512
    few = Load(messages=1_000, topics=1, subscriptions=1)
    assert fan_out_memory(few, 4_000) == 512  # 250 copies of a shard
    assert fan_out_memory(few, 2_000) == 1_024  # 500
    assert fan_out_memory(few, 1_000) == 1_769  # 1,000


@pytest.mark.long
def test_the_manuals_table_has_the_commands_counts() -> None:
    page = (Path(__file__).parents[2] / "infra/manual/capacity.md").read_text()
    rows = {
        "HTTP API, calls a second": quotas.API_CALLS,
        "Lambda, calls a second (ten for each execution of the quota)": quotas.INVOCATIONS,
        "Lambda, executions at once": quotas.CONCURRENCY,
        "DynamoDB, write units a second of `Messages`, on demand too": quotas.TABLE_WRITES,
        "DynamoDB, read units a second of `Messages`": quotas.TABLE_READS,
        "DynamoDB, reads a second of one queue's or key's document": quotas.DOCUMENT_READS,
    }
    for name, quota in rows.items():
        told = [f"{needed(load, quota):,.0f}" for load in (SINGLES, BATCHES, TOPICS)]
        assert f"| {name} | {quota.default:,} | {' | '.join(told)} |" in page
    streams = [str(shards(units(load)[0])) for load in (SINGLES, BATCHES, TOPICS)]
    assert f"| shards of the stream | none | {' | '.join(streams)} |" in page


def test_the_command_ends_with_the_parameters_to_give(capsys: pytest.CaptureFixture[str]) -> None:
    run(["--messages", "50000", "--direct"])
    told = capsys.readouterr().out
    assert "WarmWriteUnits=150000" in told
    assert "StreamConcurrency=0 or at least 150" in told


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--messages", "0"], "--messages is at least 1"),
        (["--batch", "17"], "--batch between 1 and 16"),
        (["--large", "2"], "between 0 and 1, not 2"),
        (["--topics", "1", "--subscriptions", "0"], "topics have --subscriptions or --urls"),
        (["--waiting", "-1"], "a whole number from 0 on"),
    ],
)
def test_an_impossible_load_is_refused(
    arguments: list[str], told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        run(arguments)
    assert told in capsys.readouterr().err
