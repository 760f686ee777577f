"""The jobs over the service's own exports, made after every feature was used once."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from tests.spark.every_feature import EveryFeature
from tests.spark.job_runs import REPOSITORY, Ended, Jobs, rows_in, summaries_in
from tests.spark.kinds import kinds_of
from tests.spark.recount import items_of, recount_usage

from cirrusmq_reports.keys import KINDS
from export_writer import ExportWriter


class Used(NamedTuple):
    """What every feature left behind, and the exports before and after."""

    kinds: dict[str, set[str]]
    """Table → the kinds of its items."""
    counts: dict[str, Counter[str]]
    """Resource → the messages that the service's own answers count in it."""
    reasons: dict[str, Counter[str]]
    """Queue → its dead letters by reason, as the service shows them."""
    before: dict[str, Path]
    changes: dict[str, Path]
    after: dict[str, Path]


@pytest.fixture(scope="module")
def used(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Used]:
    folder = tmp_path_factory.mktemp("used")
    made = EveryFeature(folder / "store.db")
    begun_ms = made.world.clock.now_ms()
    before = made.export(folder / "before")
    made.use_all()
    counts = {name: _kept(counted) for name, counted in made.counts().items()}
    changes = made.export(folder / "changes", since_ms=begun_ms)
    after = made.export(folder / "after")
    yield Used(made.kinds(), counts, made.reasons(), before, changes, after)
    made.world.engine.close()


def succeed(ended: Ended) -> None:
    assert (ended.code, ended.errors) == (0, "")


def test_every_kind_of_item_is_written_once(used: Used) -> None:
    """A new kind needs a feature here, so that the jobs are run on it."""
    assert set().union(*used.kinds.values()) == kinds_of(REPOSITORY / "layers/core")


@pytest.mark.parametrize("table", sorted(KINDS))
def test_the_jobs_know_every_kind_of_item(used: Used, table: str) -> None:
    assert used.kinds[table] <= KINDS[table]


@pytest.mark.parametrize(
    "shown_by",
    ["a full export", pytest.param("the changes after one", marks=pytest.mark.long)],
)
def test_the_backlog_report_equals_the_counts_of_the_service(
    tmp_path: Path, jobs: Jobs, used: Used, shown_by: str
) -> None:
    messages, directory = (
        [used.after[table]]
        if shown_by == "a full export"
        else [used.before[table], used.changes[table]]
        for table in ("Messages", "Directory")
    )

    succeed(jobs.report_backlog(tmp_path, messages, directory))

    reasons: dict[str, Counter[str]] = defaultdict(Counter)
    shown: dict[str, Counter[str]] = defaultdict(Counter)
    for each in summaries_in(tmp_path, "backlog")["acme"]["resources"]:
        # A group that was rewound has a row for its messages from before.
        shown[f"{each['kind']}:{each['name']}"].update(_kept(each))
        reasons[each["name"]].update(each["dead_by_reason"])
    assert {name: +counts for name, counts in shown.items() if +counts} == used.counts
    assert {name: +counts for name, counts in reasons.items() if +counts} == used.reasons


def _kept(counts: Mapping[str, int]) -> Counter[str]:
    """A URL's messages that wait for a retry are active in the service's answers alone."""
    kept = Counter({state: counts.get(state, 0) for state in ("delayed", "rewindable")})
    kept["kept"] = counts.get("active", 0) + counts.get("inactive", 0)
    return +kept


def test_the_bill_equals_a_plain_recount(tmp_path: Path, jobs: Jobs, used: Used) -> None:
    succeed(jobs.bill(tmp_path, [used.after["Usage"]]))

    billed = {
        (row["account"], row["resource"], row["kind"]): row["messages"]
        for row in rows_in(tmp_path, "usage")
        .groupBy("account", "resource", "kind")
        .agg({"count": "sum"})
        .withColumnRenamed("sum(count)", "messages")
        .collect()
        if row["kind"] not in ("kept", "rewindable")
    }
    expected: dict[tuple[str, str, str], int] = {}
    for (account, resource, kind, _), n in recount_usage(items_of(used.after["Usage"]))[
        "count"
    ].items():
        if kind not in ("kept", "rewindable"):
            expected[account, resource, kind] = expected.get((account, resource, kind), 0) + n
    assert billed == expected
    assert billed["acme", "queue:asked", "sent"] == 2  # a request and its reply
    assert {kind for _, _, kind in expected} >= {"sent", "received", "deleted", "published"}


@pytest.mark.long
@pytest.mark.parametrize(
    ("table", "kind"), [("Messages", "Z#1#0"), ("Usage", "news"), ("Directory", "Z#1")]
)
def test_items_of_an_unknown_kind_are_told_and_stop_no_report(
    tmp_path: Path, jobs: Jobs, used: Used, table: str, kind: str
) -> None:
    """A newer version wrote them, and names its attributes as it likes."""
    odd = {"S": "a"}
    item: dict[str, Any] = {
        "pk": {"S": kind},
        "sk": odd,
        "v": odd,
        "records": odd,
        "document": {"N": "1"},
    }
    writer = ExportWriter(root=tmp_path, table=table, at_ms=2_000_000_000_000)
    writer.write_file(
        [
            json.dumps({"Item": each})
            for each in (*items_of(used.after[table]), item, item | {"sk": {"S": "b"}})
        ]
    )
    exports = used.after | {table: writer.finish()}

    if table == "Usage":
        ended = jobs.bill(tmp_path / "out", [exports["Usage"]])
    else:
        ended = jobs.report_backlog(tmp_path / "out", [exports["Messages"]], [exports["Directory"]])

    assert ended.code == 0, ended.errors
    assert ended.errors.startswith(f"2 items of {table} are of the kind {kind.partition('#')[0]},")
    assert (tmp_path / "out/current").exists()
