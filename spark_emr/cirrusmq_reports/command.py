"""What the jobs' command lines share: reading inputs, and ending with the right exit code."""

from __future__ import annotations

import sys
from argparse import ArgumentParser, ArgumentTypeError
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException
from pyspark.logger import PySparkLogger
from pyspark.sql import DataFrame, SparkSession

from cirrusmq_reports.diagnosis import explain, find_miscount
from cirrusmq_reports.errors import BadInput
from cirrusmq_reports.files import open_files
from cirrusmq_reports.manifests import Export, check_data_files, read_exports
from cirrusmq_reports.records import Reader
from cirrusmq_reports.times import parse_time

SUCCEEDED, REFUSED = 0, 2

_QUERY_LOGGERS = ("SQLQueryContextLogger", "DataFrameQueryContextLogger")

Session = Callable[[], SparkSession]
"""Answers the session, made at the first call: bad manifests are refused before Spark starts."""


def exit_code(job: Callable[[], None]) -> int:
    """Run a job; what it refuses is one line on standard error."""
    for name in _QUERY_LOGGERS:
        # They print the trace of an error that is caught, and explained, further up.
        PySparkLogger.getLogger(name).setLevel("CRITICAL")
    try:
        job()
    except BadInput as error:
        print(f"error: {error}", file=sys.stderr)
        return REFUSED
    return SUCCEEDED


def add_common_arguments(parser: ArgumentParser, table: str) -> None:
    """`--export`, `--output`."""
    parser.add_argument(
        "--export",
        action="append",
        required=True,
        metavar="FOLDER",
        dest="exports",
        help=f"an export of {table}: the folder with manifest-summary.json; can be repeated",
    )
    parser.add_argument(
        "--output", required=True, metavar="FOLDER", help="where the reports are written"
    )


def time_argument(text: str) -> int:
    """A time option's epoch milliseconds."""
    try:
        return parse_time(text)
    except ValueError:
        raise ArgumentTypeError(f"{text} is neither a date nor an RFC 3339 time") from None


def open_exports(folders: Sequence[str], session: Session) -> list[Export]:
    """The exports in these folders, oldest first, their manifests and data files checked."""
    exports: list[Export] = []
    if folders:
        files = open_files(folders[0], session)
        exports = read_exports(files, folders)
        check_data_files(files, exports)
    return exports


@contextmanager
def named_failures(readers: Sequence[Reader]) -> Iterator[None]:
    """Turn an error of Spark into BadInput, where the exports are to blame."""
    try:
        yield
    except (PySparkException, Py4JJavaError) as error:
        cause = explain(error, readers)
        if cause is None:
            raise
        raise cause from error


def materialize(frame: DataFrame, readers: Sequence[Reader]) -> DataFrame:
    """Work `frame` out and keep it, once all of its input has proved whole."""
    kept = frame.persist()
    with named_failures(readers):
        kept.count()
        if any(reader.miscounted() for reader in readers):
            # A stage that was repeated counts twice: only the files themselves convict.
            cause = find_miscount(readers)
            if cause:
                raise cause
    return kept
