from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from tests.spark.job_runs import (
    AT_MS,
    HOUR_MS,
    Ended,
    Jobs,
    input_bytes,
    page_in,
    rows_in,
    run_of,
    shuffled_bytes,
    summaries_in,
)
from tests.spark.recount import Backlog, in_ranges, items_of, recount_backlog

from cirrusmq_reports.figures import DEAD_REASONS
from export_writer import ExportWriter
from synthetic_messages import Messages, Resource, directory_export, labels_of
from synthetic_usage import change

COUNTS = ("active", "inactive", "delayed", "rewindable", "dead", "expired", "bytes")


def make_messages(items: int = 3_000) -> Messages:
    return Messages(seed=5, items=items, at_ms=AT_MS, resources=12, items_in_a_file=700)


def succeed(ended: Ended) -> None:
    assert (ended.code, ended.errors) == (0, "")


def resources_in(output: Path) -> dict[tuple[str, str], dict[str, Any]]:
    return {
        (account, resource["name"]): resource
        for account, summary in summaries_in(output, "backlog").items()
        for resource in summary["resources"]
    }


def export_of(root: Path, at_ms: int, items: Iterable[str], files: int = 1) -> Path:
    writer = ExportWriter(root=root, table="Messages", at_ms=at_ms)
    writer.write_files((f'{{"Item":{item}}}' for item in items), files=files)
    return writer.finish()


def assert_equals_recount(
    output: Path, recount: dict[str, Backlog], resources: Iterable[Resource]
) -> None:
    reported = resources_in(output)
    expected = {(resource.account, resource.name): resource for resource in resources}
    assert set(reported) == set(expected)
    for place, resource in expected.items():
        figures, backlog = reported[place], recount[resource.id]
        assert figures["kind"] == resource.kind
        for name in COUNTS:
            assert figures[name] == backlog.counts[name], (place, name)
        for name, values in (("receive_counts", "receives"), ("sizes", "sizes")):
            assert figures[name] == in_ranges(getattr(backlog, values), figures[name])
        assert sum(figures["dead_by_reason"].values()) == figures["dead"]
        for reason, count in backlog.reasons.items():
            told = reason if reason in DEAD_REASONS else "other"
            assert figures["dead_by_reason"][told] == count, (place, reason)
        assert_ages(figures, sorted(backlog.ages))
        assert figures["retrying"] == (backlog.probe_age_seconds is not None)
        assert figures["probe_age_seconds"] == backlog.probe_age_seconds
        if backlog.partitions:
            share = max(backlog.partitions.values()) / len(backlog.ages)
            assert figures["hottest_partition_share"] == pytest.approx(share, abs=0.0001)
            hottest = backlog.partitions[figures["hottest_partition"]]
            assert hottest == max(backlog.partitions.values())
        else:
            assert figures["hottest_partition_share"] is None


def assert_ages(figures: dict[str, Any], ages: list[int]) -> None:
    """Percentiles: the exact age's four highest bits."""
    if not ages:
        assert figures["oldest_age_seconds"] is figures["p50_age_seconds"] is None
        return
    assert figures["oldest_age_seconds"] == ages[-1]
    for percent in (50, 95, 99):
        exact = ages[-(-len(ages) * percent // 100) - 1]
        dropped = max(0, exact.bit_length() - 4)
        assert figures[f"p{percent}_age_seconds"] == exact >> dropped << dropped


@pytest.mark.long
@pytest.mark.usefixtures("as_deployed")
def test_every_figure_equals_a_plain_recount(tmp_path: Path, jobs: Jobs) -> None:
    messages = make_messages()
    items = [*messages.items_of(0, 3_000), *messages.schedules()]
    export = export_of(tmp_path, AT_MS, items, files=4)
    resources = messages.all_resources()
    idle = Resource("idle00000000", "acme", "queue", "idle", 4, 1, False, False, False)
    names = directory_export(tmp_path, AT_MS, [*resources, idle])
    succeed(jobs.report_backlog(tmp_path / "out", [export, export], [names]))
    recount = recount_backlog(items_of(export), AT_MS, windows(resources))
    assert_equals_recount(tmp_path / "out", recount, [*resources, idle])
    assert_labels_equal_recount(tmp_path / "out", recount, resources)
    totals = {name: sum(b.counts[name] for b in recount.values()) for name in COUNTS}
    assert all(totals.values()), "the export lacks something to count"
    assert any(figures["retrying"] for figures in resources_in(tmp_path / "out").values())


def assert_labels_equal_recount(
    output: Path, recount: dict[str, Backlog], resources: Iterable[Resource]
) -> None:
    """Each label's figures are those of all messages of its queues and their receivers together."""
    expected: dict[tuple[str, str, str], list[Backlog]] = {}
    for resource in resources:
        for label in labels_of(resource.queue).items() if resource.kind != "subscription" else ():
            expected.setdefault((resource.account, *label), []).append(recount[resource.id])
    reported = groups_in(output)
    assert {
        (account, row["label"], row["value"])
        for account, group in reported.items()
        for row in group["labels"]
    } == set(expected)
    assert expected
    for account, group in reported.items():
        for row in group["labels"]:
            of_label = expected[account, row["label"], row["value"]]
            assert row["resources"] == len(of_label)
            for name in COUNTS:
                assert row[name] == sum(each.counts[name] for each in of_label)
            assert_ages(row, sorted(age for each in of_label for age in each.ages))
            assert sum(row["dead_by_reason"].values()) == row["dead"]


def groups_in(output: Path) -> dict[str, Any]:
    """Account -> its labels and who has most."""
    found = run_of(output, "backlog").glob("groups/*.json")
    return {path.stem: json.loads(path.read_text()) for path in sorted(found)}


def windows(resources: Iterable[Resource]) -> dict[str, int]:
    """Resource id -> how long its deleted messages can be rewound; queues' and receivers'."""
    return {
        resource.id: resource.rewind_seconds * 1000
        for resource in resources
        if resource.kind != "subscription"
    }


@pytest.mark.long
def test_a_window_has_each_file_read_once_for_each_time(
    tmp_path: Path, jobs: Jobs, spark: SparkSession
) -> None:
    """The export's own time, and the one that the window brings it to; labels read none again."""
    messages = make_messages(items=20_000)
    items = list(messages.items_of(0, 20_000))
    full = export_of(tmp_path, AT_MS - HOUR_MS, items)
    writer = ExportWriter(root=tmp_path, table="Messages", at_ms=AT_MS, since_ms=AT_MS - HOUR_MS)
    writer.write_file([change(item, AT_MS - 9) for item in items[:10]])
    size = next((full / "data").iterdir()).stat().st_size
    names = directory_export(tmp_path, AT_MS, messages.all_resources())
    before, shuffled = input_bytes(spark), shuffled_bytes(spark)

    succeed(jobs.report_backlog(tmp_path / "out", [full, writer.finish()], [names]))

    read = input_bytes(spark) - before
    written = [held for stage, held in shuffled_bytes(spark).items() if stage not in shuffled]
    assert read < 2.5 * size, (read, size)
    # The window is merged with the export by key; of figures, sums alone are shuffled.
    assert len([held for held in written if held > size / 10]) == 1, (written, size)


def parcel(identity: str, sent_ms: int, count: int = 1) -> str:
    def numbers(value: int) -> str:
        return f'{{"L":[{",".join([f"""{{"N":"{value}"}}"""] * count)}]}}'

    expires_ms = sent_ms + 90 * HOUR_MS
    return (
        f'{{"pk":{{"S":"Q#{identity}#0"}},"sk":{{"S":"{sent_ms}#p"}},"v":{numbers(sent_ms)},'
        f'"r":{numbers(0)},"z":{numbers(10)},"t":{{"N":"{sent_ms}"}},"x":{{"N":"{expires_ms}"}},'
        f'"expires_at":{{"N":"{expires_ms // 1000}"}}}}'
    )


def hourly_exports(root: Path) -> list[Path]:
    """Exports of four hours, of a queue that shrinks and one that grows."""
    start_ms = AT_MS - 3 * HOUR_MS
    return [
        export_of(
            root,
            start_ms + hour * HOUR_MS,
            [parcel("shrinks", start_ms, shrinking), parcel("grows", start_ms, 2 + hour)],
        )
        for hour, shrinking in enumerate((16, 14, 9, 6))
    ]


@pytest.mark.long  # as transforms/test_trends.py and test_backlog_history.py
def test_trends_reach_over_exports_and_earlier_reports(tmp_path: Path, jobs: Jobs) -> None:
    exports, output = hourly_exports(tmp_path), tmp_path / "out"
    succeed(jobs.report_backlog(output, exports[:2]))
    succeed(jobs.report_backlog(output, exports[2:]))
    shrinking = resources_in(output)["(unknown)", "shrinks"]
    assert [point["messages"] for point in shrinking["backlog_by_time"]] == [16, 14, 9, 6]
    assert shrinking["backlog_by_time"][-1]["at"] == "2026-11-20T08:00:00.000Z"
    assert (shrinking["growth_per_hour"], shrinking["hours_to_drain"]) == (-3.0, 2.0)
    growing = resources_in(output)["(unknown)", "grows"]
    assert (growing["growth_per_hour"], growing["hours_to_drain"]) == (1.0, None)
    # A history shows as many times as it is asked for.
    succeed(jobs.report_backlog(output, exports[3:], [], "--history", "2"))
    shown = resources_in(output)["(unknown)", "shrinks"]["backlog_by_time"]
    assert [point["messages"] for point in shown] == [9, 6]
    rows = rows_in(output, "backlog").collect()
    assert len({(row["at_ms"], row["id"]) for row in rows}) == len(rows) == 8


@pytest.mark.long
@pytest.mark.usefixtures("planned_as_deployed")
def test_an_empty_export_gives_an_empty_report(tmp_path: Path, jobs: Jobs) -> None:
    output = tmp_path / "out"
    succeed(jobs.report_backlog(output, [export_of(tmp_path / "1", AT_MS, [parcel("q", AT_MS)])]))
    assert resources_in(output)
    succeed(jobs.report_backlog(output, [export_of(tmp_path / "2", AT_MS + 1, [])]))
    assert resources_in(output) == {}, "what an account had is not what it has"
    assert "no messages" in page_in(output, "backlog").read_text()


@pytest.mark.long
def test_the_time_can_be_chosen_and_odd_items_double_and_break_nothing(
    tmp_path: Path, jobs: Jobs
) -> None:
    """A name is there twice, and a parcel has no messages."""
    sent_ms = AT_MS - HOUR_MS
    export = export_of(tmp_path, AT_MS, [parcel("q", sent_ms), parcel("none", sent_ms, 0)])
    queue = Resource("q", "acme", "queue", "orders", 4, 1, False, False, False)
    names = directory_export(tmp_path, AT_MS, [queue, queue])
    succeed(jobs.report_backlog(tmp_path, [export], [names], "--at", "2026-11-20T09:30:00Z"))
    (orders,) = summaries_in(tmp_path, "backlog")["acme"]["resources"]
    assert (orders["active"], orders["oldest_age_seconds"]) == (1, 2.5 * 3_600)
    empty = resources_in(tmp_path)["(unknown)", "none"]
    assert {empty[name] for name in COUNTS} == {0}
    assert empty["oldest_age_seconds"] is None


@pytest.mark.usefixtures("as_deployed")
@pytest.mark.long
def test_two_million_items_equal_a_plain_recount(tmp_path: Path, jobs: Jobs) -> None:
    messages = Messages(seed=2, items=2_000_000, at_ms=AT_MS, resources=400)
    export = messages.export(tmp_path)
    names = directory_export(tmp_path, AT_MS, messages.all_resources())
    succeed(jobs.report_backlog(tmp_path / "out", [export], [names]))
    resources = messages.all_resources()
    recount = recount_backlog(items_of(export), AT_MS, windows(resources))
    assert_equals_recount(tmp_path / "out", recount, resources)


@pytest.mark.long
def test_a_run_over_an_older_export_leaves_the_newest_one_the_newest(
    tmp_path: Path, jobs: Jobs
) -> None:
    output = tmp_path / "out"
    older, newer = (
        Messages(seed=5, items=items, at_ms=at_ms, resources=3).export(tmp_path / str(items))
        for items, at_ms in ((20, AT_MS), (40, AT_MS + 86_400_000))
    )
    assert jobs.report_backlog(output, [newer]).code == 0
    before = summaries_in(output, "backlog")

    assert jobs.report_backlog(output, [older]).code == 0

    after = summaries_in(output, "backlog")
    for account, summary in before.items():
        assert after[account]["at"] == summary["at"]
        shown = {each["name"]: each["active"] for each in after[account]["resources"]}
        assert shown == {each["name"]: each["active"] for each in summary["resources"]}
    times = {row["at_ms"] for row in rows_in(output, "backlog").collect()}
    assert times == {AT_MS, AT_MS + 86_400_000}
