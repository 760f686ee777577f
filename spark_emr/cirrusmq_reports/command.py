"""Helpers of the jobs' command lines: they read inputs and return the right exit code."""

from __future__ import annotations

import errno
import os
import re
import sys
from argparse import ArgumentParser, ArgumentTypeError
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException
from pyspark.logger import PySparkLogger
from pyspark.sql import DataFrame, SparkSession

from cirrusmq_reports.diagnosis import explain, find_bad_record, find_miscount
from cirrusmq_reports.errors import BadInput
from cirrusmq_reports.files import open_files
from cirrusmq_reports.manifests import Export, check_data_files, read_exports
from cirrusmq_reports.publication import Outputs
from cirrusmq_reports.records import Reader
from cirrusmq_reports.times import parse_moment

SUCCEEDED, REFUSED = 0, 2
TRIES = 3
"""Maximum tries of a run while other runs are published first."""
OUTDATED_AGAIN = "another run was published meanwhile: once more, from there"
_COUNT_MOST = 10_000

_NO_ROOM = os.strerror(errno.ENOSPC)
_QUERY_LOGGERS = ("SQLQueryContextLogger", "DataFrameQueryContextLogger")

Session = Callable[[], SparkSession]
"""Returns the session, made at the first call: bad manifests are refused before Spark starts."""


def exit_code(job: Callable[[], None]) -> int:
    """Runs a job. Returns its exit code; a BadInput is one line on standard error."""
    for name in _QUERY_LOGGERS:
        # These print the trace of an error that is caught and explained above.
        PySparkLogger.getLogger(name).setLevel("CRITICAL")
    try:
        job()
    except BadInput as error:
        return _refuse(str(error))
    except OSError as error:
        if error.filename is None:
            raise
        return _refuse(f"{error.filename2 or error.filename}: {error.strerror}")
    except (PySparkException, Py4JJavaError) as error:
        if _NO_ROOM not in str(error):
            raise
        return _refuse(f"{_NO_ROOM}: nothing is replaced")
    return SUCCEEDED


def _refuse(message: str) -> int:
    line = "".join(
        letter if letter.isprintable() else letter.encode("unicode_escape").decode()
        for letter in message
    )
    print(f"error: {line}", file=sys.stderr)
    return REFUSED


def add_directory_argument(parser: ArgumentParser, told: str) -> None:
    """Adds `--directory-export`, as the option `directories`; `told` is its help."""
    parser.add_argument(
        "--directory-export",
        action="append",
        type=place_argument,
        default=[],
        metavar="FOLDER",
        dest="directories",
        help=told,
    )


def add_common_arguments(parser: ArgumentParser, table: str) -> None:
    """Adds `--export`, `--output` and `--propose`."""
    parser.add_argument(
        "--export",
        action="append",
        type=place_argument,
        required=True,
        metavar="FOLDER",
        dest="exports",
        help=f"an export of {table}: the folder with manifest-summary.json; can be repeated",
    )
    parser.add_argument(
        "--output",
        type=place_argument,
        required=True,
        metavar="FOLDER",
        help="where the reports are written",
    )
    parser.add_argument(
        "--propose",
        type=name_argument,
        metavar="NAME",
        help="write a proposal of that name, and leave the publishing to who calls",
    )


def place_argument(text: str) -> str:
    """An option's file or folder: a URI, or an absolute path."""
    if not text or "\0" in text:
        raise ArgumentTypeError("not the name of a file or folder")
    return text if "://" in text else os.path.abspath(text)


def name_argument(text: str) -> str:
    """An option that is part of a file's name."""
    if not re.fullmatch("[A-Za-z0-9_-]{1,64}", text):
        raise ArgumentTypeError(f"{text} is not 1 to 64 letters and digits")
    return text


def count_argument(text: str) -> int:
    """An option that is one or more."""
    if not text.isascii() or not text.isdigit() or not 1 <= int(text) <= _COUNT_MOST:
        raise ArgumentTypeError(f"{text} is not a number from 1 to {_COUNT_MOST}")
    return int(text)


def time_argument(text: str) -> int:
    """Returns a time option's epoch milliseconds."""
    try:
        return parse_moment(text)
    except ValueError:
        raise ArgumentTypeError(f"{text} is neither a date nor an RFC 3339 time") from None


def open_exports(folders: Sequence[str], session: Session) -> list[Export]:
    """Returns the exports in these folders, oldest first, with manifests and data files checked."""
    return check_exports(list_exports(folders, session), session)


def list_exports(folders: Sequence[str], session: Session) -> list[Export]:
    """Returns the exports in these folders, oldest first, with manifests checked."""
    return read_exports(open_files(folders[0], session), folders) if folders else []


def check_exports(exports: Sequence[Export], session: Session) -> list[Export]:
    """Returns the same exports with their sizes, with data files checked."""
    if not exports:
        return []
    return check_data_files(open_files(exports[0].folder, session), exports)


@contextmanager
def open_outputs(folder: str, session: Session, report: str, *tables: str) -> Iterator[Outputs]:
    """Yields the outputs of a report; if the run fails, its files are removed.

    Raises BadInput if a file is in the place of a folder that a report needs, or the reverse.
    """
    outputs = Outputs(open_files(folder, session), folder, report, tables)
    try:
        yield outputs
    except BaseException:
        outputs.discard()
        raise


@contextmanager
def named_failures(readers: Sequence[Reader]) -> Iterator[None]:
    """Turns an error of Spark into BadInput if the exports are its cause."""
    try:
        yield
    except (PySparkException, Py4JJavaError) as error:
        cause = explain(error, readers)
        if cause is None:
            raise
        raise cause from error


def materialize(frame: DataFrame, readers: Sequence[Reader]) -> DataFrame:
    """Computes and caches `frame`. Raises BadInput if its input is damaged or incomplete."""
    kept = frame.persist()
    with named_failures(readers):
        kept.count()
        # A repeated stage counts twice, so only the files themselves prove a fault.
        cause = find_miscount([reader for reader in readers if reader.miscounted()])
        cause = cause or find_bad_record([reader for reader in readers if reader.faulty()])
        if cause:
            raise cause
        for reader in readers:
            _tell_unknown_kinds(reader)
    return kept


def _tell_unknown_kinds(reader: Reader) -> None:
    for kind, count in reader.unknown_kinds().items():
        print(
            f"{count:,} items of {reader.schema.name} are of the kind {kind}, which these reports"
            " do not know: they are in no figure; use the reports of the service's own version",
            file=sys.stderr,
        )
