"""`backlog_job.py`: from exports of the Messages table to the backlog reports."""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from cirrusmq_reports.backlog_groups import backlog_groups
from cirrusmq_reports.backlog_history import TREND_PART, plan_history
from cirrusmq_reports.backlog_page import render_backlog
from cirrusmq_reports.backlog_summary import backlog_summaries
from cirrusmq_reports.command import (
    OUTDATED_AGAIN,
    TRIES,
    Session,
    add_common_arguments,
    add_directory_argument,
    count_argument,
    exit_code,
    materialize,
    named_failures,
    open_exports,
    open_outputs,
    time_argument,
)
from cirrusmq_reports.errors import BadInput
from cirrusmq_reports.manifests import Export, check_no_gap, check_one_table
from cirrusmq_reports.publication import Outdated, Outputs, Part
from cirrusmq_reports.records import Reader
from cirrusmq_reports.schemas import DIRECTORY, MESSAGES, MESSAGES_WITH_DELETIONS
from cirrusmq_reports.session import (
    partitioned_for,
    without_rows,
)
from cirrusmq_reports.times import iso_day, iso_time
from cirrusmq_reports.transforms.counts_by_age import counts_by_age
from cirrusmq_reports.transforms.current_items import current_items
from cirrusmq_reports.transforms.figures_by_label import figures_by_label
from cirrusmq_reports.transforms.figures_by_resource import figures_by_resource
from cirrusmq_reports.transforms.messages import messages
from cirrusmq_reports.transforms.named_figures import named_figures
from cirrusmq_reports.transforms.resource_names import NAMES_SCHEMA, resource_names
from cirrusmq_reports.transforms.trends import with_trends

REPORT = "backlog"
BACKLOG_TABLE, LABEL_TABLE, TREND_TABLE = "backlog", "backlog_labels", "backlog_trend"
TREND_SCHEMA = "id STRING, at_ms BIGINT, messages BIGINT"
TIMES_SHOWN = 24


@dataclass(frozen=True, slots=True)
class Point:
    """A time whose backlog is reported, and the exports for it."""

    at_ms: int
    base: Export
    later: tuple[Export, ...] = ()


def run(arguments: Sequence[str], session: Session) -> int:
    """Runs the job. Returns its exit code."""
    options = _parser().parse_args(arguments)
    return exit_code(lambda: _report(options, session))


def plan_points(exports: Sequence[Export], at_ms: int | None) -> list[Point]:
    """Returns the points: each full export, and one for the windows after the last of them.

    `at_ms`: time of the newest point, or None for the export's own. Raises BadInput if there is no
    full export, or a time that no window covers.
    """
    fulls = [export for export in exports if export.full]
    if not fulls:
        raise BadInput(f"{exports[0].folder}: an incremental export without a full one before it")
    points = [Point(export.at_ms, export) for export in fulls]
    newest = fulls[-1]
    windows = [export for export in exports if not export.full and export.at_ms > newest.at_ms]
    if windows:
        changes = [(window.since_ms or 0, window) for window in windows]
        check_no_gap([(newest.at_ms, newest), *changes])
        points.append(Point(windows[-1].at_ms, newest, tuple(windows)))
    if at_ms is not None:
        points[-1] = Point(at_ms, points[-1].base, points[-1].later)
    last = points.pop()
    # With `--at`, the newest export is shown for a time before other exports of this run.
    earlier = {point.at_ms: point for point in points if point.at_ms < last.at_ms}
    return [*earlier.values(), last]


def _parser() -> ArgumentParser:
    parser = ArgumentParser(prog="backlog_job.py", description="Report what stands in the queues.")
    add_common_arguments(parser, "Messages")
    add_directory_argument(
        parser, "an export of Directory, for accounts and names; can be repeated"
    )
    parser.add_argument(
        "--at",
        type=time_argument,
        metavar="TIME",
        help="the time to look at the newest export as of; its own if not given",
    )
    parser.add_argument(
        "--history",
        type=count_argument,
        default=TIMES_SHOWN,
        metavar="COUNT",
        help="how many times a trend shows, earlier reports in the output included",
    )
    return parser


def _report(options: Namespace, session: Session) -> None:
    exports = open_exports(options.exports, session)
    directories = open_exports(options.directories, session)
    for tables in (exports, directories):
        check_one_table(tables)
    points = plan_points(exports, options.at)
    for _ in range(TRIES):
        try:
            _make(options, session, points, directories)
        except Outdated:
            print(OUTDATED_AGAIN, file=sys.stderr)
            continue
        return
    raise BadInput(f"{options.output}: other runs were published {TRIES} times meanwhile")


def _make(
    options: Namespace,
    session: Session,
    points: Sequence[Point],
    directories: Sequence[Export],
) -> None:
    tables = (BACKLOG_TABLE, LABEL_TABLE, TREND_TABLE)
    with open_outputs(options.output, session, REPORT, *tables) as outputs:
        spark = session()
        size = sum(export.size for point in points for export in (point.base, *point.later))
        readers: list[Reader] = []
        names = _names(spark, directories, readers)
        named = bool(directories)
        frames = [_figures(spark, point, names, readers, named=named) for point in points]
        with partitioned_for(spark, size):
            current = materialize(reduce(DataFrame.unionByName, frames), readers)
        try:
            with named_failures(readers):
                # Spark merges a union into one that contains it, and then does not know that the
                # rows are cached: all files would be read again. A filter keeps the two separate.
                _write(spark, outputs, current.where("at_ms IS NOT NULL"), points, options)
        finally:
            spark.catalog.clearCache()


def _write(
    spark: SparkSession,
    outputs: Outputs,
    current: DataFrame,
    points: Sequence[Point],
    options: Namespace,
) -> None:
    """Computes all outputs first, then writes, then publishes them."""
    limit: int = options.history
    published, times_ms = outputs.published, [point.at_ms for point in points]
    known_ms = [int(time_ms) for time_ms in published.state.get("times_ms", ())]
    repeated = sf.col("at_ms").isin(times_ms)
    # The run's figures by resource and by label, with the parts of each table that it rewrites.
    tables = [
        _Stored(outputs, BACKLOG_TABLE, current.drop("ages"), (known_ms, times_ms, limit)),
        _Stored(outputs, LABEL_TABLE, figures_by_label(current), (known_ms, times_ms, limit)),
    ]
    history = tables[0].history
    known = outputs.read(spark, published.of(TREND_TABLE).values(), TREND_SCHEMA).where(~repeated)
    kept = sf.col("active") + sf.col("inactive") + sf.col("delayed")
    now = current.select("id", "at_ms", kept.alias("messages"))
    times = known.unionByName(now).where(sf.col("at_ms").isin(list(history.times_ms))).persist()
    # A run over an older export writes its point in its place, and shows the newest one again.
    at_ms = max([*times_ms, *known_ms])
    newest, labels = (table.at(spark, at_ms) for table in tables)
    rows = [row.asDict() for row in with_trends(newest, times, at_ms, limit).collect()]
    accounts = outputs.summarized_accounts()
    summaries = backlog_summaries(rows, accounts, at_ms, outputs.generated_ms)
    groups = backlog_groups(summaries, [row.asDict() for row in labels.collect()])
    page = render_backlog(summaries, groups, at_ms)
    for table in tables:
        table.write_empty(spark)
    written = [
        *(part for table in tables for part in table.write(spark)),
        *outputs.write(times.withColumn("kept_in", sf.lit(TREND_PART)), TREND_TABLE, "kept_in"),
    ]
    for account, summary in summaries.items():
        outputs.write_summary(account, summary)
        outputs.write_group(account, groups[account])
    outputs.write_page(page)
    state = {"at": iso_time(at_ms), "times_ms": list(history.times_ms)}
    unchanged = [part for table in tables for part in table.history.kept]
    outputs.publish(state, [*unchanged, *written], propose=options.propose)


class _Stored:
    """A table with rows for each time; a run rewrites some of its parts."""

    def __init__(
        self,
        outputs: Outputs,
        table: str,
        current: DataFrame,
        times: tuple[Sequence[int], Sequence[int], int],
    ) -> None:
        """current: the rows of this run. times: as of `plan_history`."""
        self._outputs, self._table, self._current = outputs, table, current
        self._times_ms = times[1]
        self._parts = list(outputs.published.of(table).values())
        self.history = plan_history(self._parts, *times)

    def at(self, spark: SparkSession, at_ms: int) -> DataFrame:
        """Returns the rows of a time, from this run or an earlier one."""
        if at_ms in self._times_ms:
            return self._current.where(sf.col("at_ms") == at_ms)
        place = {iso_day(at_ms), iso_day(at_ms)[:7]}
        own = [part for part in self._parts if part.part in place]
        return self._read(spark, own).where(sf.col("at_ms") == at_ms)

    def write(self, spark: SparkSession) -> list[Part]:
        """Writes this run's rows, together with the earlier rows of the same parts."""
        again = sf.col("at_ms").isin(list(self._times_ms))
        earlier = self._read(spark, self.history.rewritten).where(~again)
        in_month = sf.substring("day", 1, 7) == self.history.month
        part = sf.when(in_month, sf.col("day")).otherwise(sf.substring("day", 1, 7))
        rows = self._current.unionByName(earlier).withColumn("kept_in", part)
        return self._outputs.write(rows, self._table, "kept_in")

    def write_empty(self, spark: SparkSession) -> None:
        """Writes an empty file, so that the table has one also if no resource has a label."""
        schema = f"{_stored_schema(self._current)}, kept_in STRING, run STRING"
        self._outputs.write_empty(spark, self._table, schema)

    def _read(self, spark: SparkSession, parts: Sequence[Part]) -> DataFrame:
        stored = self._outputs.read(spark, parts, _stored_schema(self._current))
        return stored.select(self._current.columns)


def _figures(
    spark: SparkSession, point: Point, names: DataFrame, readers: list[Reader], *, named: bool
) -> DataFrame:
    readers.append(Reader(spark, MESSAGES_WITH_DELETIONS if named else MESSAGES))
    items = current_items(readers[-1], point.base, point.later)
    counts = counts_by_age(messages(items, names if named else None), point.at_ms)
    figures = named_figures(figures_by_resource(counts, point.at_ms), names)
    return figures.withColumns(
        {
            "at_ms": sf.lit(point.at_ms).cast("bigint"),
            "at": sf.timestamp_millis(sf.lit(point.at_ms)),
            "day": sf.lit(iso_day(point.at_ms)),
        }
    )


def _names(spark: SparkSession, exports: Sequence[Export], readers: list[Reader]) -> DataFrame:
    if not exports:
        return without_rows(spark, NAMES_SCHEMA)
    newest = plan_points(exports, None)[-1]
    readers.append(Reader(spark, DIRECTORY))
    return resource_names(current_items(readers[-1], newest.base, newest.later)).persist()


def _stored_schema(frame: DataFrame) -> str:
    return ", ".join(f"{field.name} {field.dataType.simpleString()}" for field in frame.schema)
