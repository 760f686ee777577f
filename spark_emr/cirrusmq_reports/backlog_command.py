"""`backlog_job.py`: from exports of the Messages table to the backlog reports."""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from cirrusmq_reports.backlog_history import TREND_PART, plan_history
from cirrusmq_reports.backlog_page import render_backlog
from cirrusmq_reports.backlog_summary import backlog_summaries
from cirrusmq_reports.command import (
    OUTDATED_AGAIN,
    TRIES,
    Session,
    add_common_arguments,
    count_argument,
    exit_code,
    materialize,
    named_failures,
    open_exports,
    open_outputs,
    place_argument,
    time_argument,
)
from cirrusmq_reports.errors import BadInput
from cirrusmq_reports.manifests import Export, check_no_gap, check_one_table
from cirrusmq_reports.publication import Outdated, Outputs
from cirrusmq_reports.records import Reader
from cirrusmq_reports.schemas import DIRECTORY, MESSAGES, MESSAGES_WITH_DELETIONS
from cirrusmq_reports.session import without_generated_code, without_rows
from cirrusmq_reports.times import iso_day, iso_time
from cirrusmq_reports.transforms.counts_by_age import counts_by_age
from cirrusmq_reports.transforms.current_items import current_items
from cirrusmq_reports.transforms.figures_by_resource import figures_by_resource
from cirrusmq_reports.transforms.messages import messages
from cirrusmq_reports.transforms.named_figures import named_figures
from cirrusmq_reports.transforms.resource_names import NAMES_SCHEMA, resource_names
from cirrusmq_reports.transforms.trends import with_trends

REPORT = "backlog"
BACKLOG_TABLE, TREND_TABLE = "backlog", "backlog_trend"
TREND_SCHEMA = "id STRING, at_ms BIGINT, messages BIGINT"
TIMES_SHOWN = 24


@dataclass(frozen=True, slots=True)
class Point:
    """A time whose backlog is reported, and the exports that show it."""

    at_ms: int
    base: Export
    later: tuple[Export, ...] = ()


def run(arguments: Sequence[str], session: Session) -> int:
    """Run the job; its exit code."""
    options = _parser().parse_args(arguments)
    return exit_code(lambda: _report(options, session))


def plan_points(exports: Sequence[Export], at_ms: int | None) -> list[Point]:
    """Each full export is a point; windows after the last one make another, the newest.

    `at_ms` is the time to look at the newest as of, if not its own. Raises BadInput: no full
    export, or a stretch of time that no window covers.
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
    earlier = {point.at_ms: point for point in points if point.at_ms != last.at_ms}
    return [*earlier.values(), last]


def _parser() -> ArgumentParser:
    parser = ArgumentParser(prog="backlog_job.py", description="Report what stands in the queues.")
    add_common_arguments(parser, "Messages")
    parser.add_argument(
        "--directory-export",
        action="append",
        type=place_argument,
        default=[],
        metavar="FOLDER",
        dest="directories",
        help="an export of Directory, for accounts and names; can be repeated",
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
    with open_outputs(options.output, session, REPORT, BACKLOG_TABLE, TREND_TABLE) as outputs:
        spark = session()
        readers: list[Reader] = []
        names = _names(spark, directories, readers)
        named = bool(directories)
        frames = [_figures(spark, point, names, readers, named=named) for point in points]
        current = materialize(reduce(DataFrame.unionByName, frames), readers)
        try:
            with named_failures(readers), without_generated_code(spark):
                # Spark joins a union with one that it is part of, and then no longer knows that
                # it has its rows already: all files would be read again. A filter keeps them apart.
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
    """Everything is worked out first, then written, then published."""
    most: int = options.history
    published, times_ms = outputs.published, [point.at_ms for point in points]
    known_ms = [int(time_ms) for time_ms in published.state.get("times_ms", ())]
    history = plan_history(published.of(BACKLOG_TABLE).values(), known_ms, times_ms, most)
    repeated = sf.col("at_ms").isin(times_ms)
    earlier = outputs.read(spark, history.rewritten, _stored_schema(current)).where(~repeated)
    known = outputs.read(spark, published.of(TREND_TABLE).values(), TREND_SCHEMA).where(~repeated)
    kept = sf.col("active") + sf.col("inactive") + sf.col("delayed")
    now = current.select("id", "at_ms", kept.alias("messages"))
    times = known.unionByName(now).where(sf.col("at_ms").isin(list(history.times_ms))).persist()
    # A run over an older export writes its point in its place, and shows the newest one again.
    at_ms = max([*times_ms, *known_ms])
    place = {iso_day(at_ms), iso_day(at_ms)[:7]}
    own = [part for part in published.of(BACKLOG_TABLE).values() if part.part in place]
    stored = outputs.read(spark, own, _stored_schema(current))
    newest = (current if at_ms in times_ms else stored.select(current.columns)).where(
        sf.col("at_ms") == at_ms
    )
    rows = [row.asDict() for row in with_trends(newest, times, at_ms, most).collect()]
    accounts = outputs.summarized_accounts()
    summaries = backlog_summaries(rows, accounts, at_ms, outputs.generated_ms)
    page = render_backlog(summaries, at_ms)
    in_month = sf.substring("day", 1, 7) == history.month
    part = sf.when(in_month, sf.col("day")).otherwise(sf.substring("day", 1, 7))
    rewritten = current.unionByName(earlier.select(current.columns)).withColumn("kept_in", part)
    written = [
        *outputs.write(rewritten, BACKLOG_TABLE, "kept_in"),
        *outputs.write(times.withColumn("kept_in", sf.lit(TREND_PART)), TREND_TABLE, "kept_in"),
    ]
    for account, summary in summaries.items():
        outputs.write_summary(account, summary)
    outputs.write_page(page)
    state = {"at": iso_time(at_ms), "times_ms": list(history.times_ms)}
    outputs.publish(state, [*history.kept, *written], propose=options.propose)


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
