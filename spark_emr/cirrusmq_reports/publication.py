"""Publishes all outputs of a run or none: a run writes into its own folders, then moves a pointer.

```
current/billing.json, current/backlog.json    the pointers
tables/<table>/<run>/part=2026-11/*.parquet    rows, by the table's parts: months, or days
runs/backlog/<run>/summaries/<account>.json    the answer of GET /reports/backlog
runs/billing/<run>/accounts/<account>.json     the same for billing, without documents' lines
runs/billing/<run>/lines/<account>.json        the lines of the documents that the run issued
runs/<report>/<run>/<report>.html              for a person to look at
runs/<report>/<run>/proposal.json              the pointer to be, and the run it began from
runs/billing/<run>/documents/<account>/<number>.json, .csv, .html
documents/<account>/<number>.json, .csv, .html  the same, copied once the pointer names the run
```

A pointer has the run's state in its first line, then a line for each part of a table with the run
that wrote it: an unchanged part stays in its folder. If the state has a format, one more line has
it, which is no part: releases without formats take the line for a part, and refuse the pointer.
A failure before the pointer's swap leaves files that nobody reads; a later run removes them::

    run 1   writes its folders ──> pointer: run 1
    run 2   writes its folders ── disk full              (readers: run 1)
    run 3   writes its folders ──> pointer: run 3, and parts of run 1

The pointer is swapped by a conditional write (`swap`): on one machine the run does this itself,
under a lock; in a bucket the run only makes a proposal, since Hadoop has no conditional writes.
"""

from __future__ import annotations

import errno
import json
import time
import uuid
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from typing import Any
from urllib.parse import quote, unquote

from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]
from pyspark.sql import DataFrame, Observation, SparkSession
from pyspark.sql import functions as sf

from cirrusmq_reports.errors import BadInput
from cirrusmq_reports.files import Files, escape_pattern
from cirrusmq_reports.local_place import LocalPlace
from cirrusmq_reports.session import without_rows
from cirrusmq_reports.swap import (
    DOCUMENTS,
    OUTDATED,
    PROPOSALS,
    Proposal,
    copy_documents,
    digest_of,
    swap,
)
from cirrusmq_reports.times import DAY_MS, compact_time

CURRENT, TABLES, RUNS = "current", "tables", "runs"
_SUMMARIES, _GROUPS = "summaries", "groups"
_PART = "part"
_EMPTY = "empty"
"""In the place of a run's name; it sorts behind all of these, which are times."""
FOLDED = "-folded"
"""Suffix of a run's second folder in a table, which has folded older parts."""
_NAME_SAFE = "()"
_FORMAT = "format"
_FILES_AT_ONCE, _BYTES_AT_ONCE = 64, 16 << 20
_COMPACT = (",", ":")
"""Without an indent, C code writes the JSON, in a quarter of the time."""


@dataclass(frozen=True, slots=True)
class Part:
    """A part of a table, and the run that wrote it."""

    dataset: str
    part: str
    """`2026-11` or `2026-11-20`."""
    run: str
    row_count: int
    sequence: int = 0
    """The number of the run that wrote it."""


class Outdated(Exception):
    """Another run was published since this run began: this run must be repeated."""


@dataclass(frozen=True, slots=True)
class Published:
    """The parts that a pointer names, or none before the first run."""

    run: str = ""
    state: Mapping[str, Any] = field(default_factory=dict)
    parts: Sequence[Part] = ()

    def of(self, table: str) -> dict[str, Part]:
        """Returns the parts of a table by name, for tables with one run in each part."""
        return {each.part: each for each in self.all_of(table)}

    def all_of(self, table: str) -> list[Part]:
        """Returns all parts of a table."""
        return [each for each in self.parts if each.dataset == table]


class Outputs:
    """One report's outputs in a folder, and a run that makes new ones."""

    def __init__(self, files: Files, folder: str, report: str, tables: Sequence[str]) -> None:
        self.files, self.folder, self.report = files, folder.rstrip("/"), report
        self._tables, self._moving = tables, False
        self._written: list[str] = []
        self._waiting: dict[str, bytes] = {}
        self.sequence = 0
        now_ms = time.time_ns() // 1_000_000
        self.generated_ms = now_ms
        self.run = f"{compact_time(now_ms)}-{uuid.uuid4().hex[:8]}"
        self._check_places()
        self.published = self._read_pointer()

    @property
    def _pointer(self) -> str:
        return f"{self.folder}/{CURRENT}/{self.report}.json"

    def read(self, session: SparkSession, parts: Iterable[Part], schema: str) -> DataFrame:
        """Returns the rows of these parts of one table."""
        folders = [escape_pattern(self._part_folder(each)) for each in parts if each.row_count]
        if not folders:
            return without_rows(session, schema)
        return session.read.schema(schema).parquet(*folders)

    def write(
        self, frame: DataFrame, table: str, part: str, *, near: str = "", folded: bool = False
    ) -> list[Part]:
        """Writes the rows, whose column `part` names their part. Returns the parts.

        `near`: a column; rows with an equal value are written to few files. `folded`: the rows come
        from older parts. Reads the rows back; raises OSError if their number is wrong.
        """
        run = f"{self.run}{FOLDED}" if folded else self.run
        folder = f"{self.folder}/{TABLES}/{table}/{run}"
        written = Observation()
        counted = frame.observe(written, sf.count(sf.lit(1)).alias("rows"))
        rows = counted.withColumns({"run": sf.lit(run), _PART: sf.col(part)})
        # Files of almost equal size, also if a part has nearly all rows.
        sized = rows.hint("rebalance", _PART, *([near] if near else []))
        sized.write.partitionBy(_PART).parquet(folder, mode="errorifexists")
        expected = _observed(written, frame)
        if not expected:
            return []
        # With a schema Spark need not find one in the files, which takes another job.
        schema = f"run STRING, {_PART} STRING"
        rows_read = frame.sparkSession.read.schema(schema).parquet(escape_pattern(folder))
        read = rows_read.groupBy(_PART).count()
        parts = {str(row[_PART]): int(row["count"]) for row in read.collect()}
        count = sum(parts.values())
        # A repeated stage counts twice: then the rows themselves are counted.
        if count != expected and count != frame.count():
            raise OSError(errno.EIO, "not all rows that were written are read back", folder)
        return [
            Part(table, name, run, count, self.sequence) for name, count in sorted(parts.items())
        ]

    def write_few(
        self, session: SparkSession, rows: Sequence[Any], schema: str, table: str, part: str
    ) -> list[Part]:
        """Writes rows that each run rewrites, in one file, by one job, without reading back."""
        folder = f"{self.folder}/{TABLES}/{table}/{self.run}/{_PART}={part}"
        frame = session.createDataFrame(rows, schema)
        written = frame.withColumns({"kept_in": sf.lit(part), "run": sf.lit(self.run)})
        written.coalesce(1).write.parquet(folder, mode="errorifexists")
        return [Part(table, part, self.run, len(rows), self.sequence)]

    def _place(self) -> LocalPlace | None:
        """Returns the output folder if it is on this machine's disk, else None."""
        scheme, _, path = self.folder.rpartition("://")
        if scheme not in ("", "file"):
            return None
        return LocalPlace(unquote(path) if scheme else self.folder)

    def write_empty(self, session: SparkSession, table: str, schema: str) -> None:
        """Writes a file without rows, for readers of all files of a table that has none."""
        # One file for each schema: views name its columns before other files have them.
        own = digest_of(schema.encode())[:8]
        folder = f"{self.folder}/{TABLES}/{table}/{_EMPTY}/{_PART}={_EMPTY}-{own}"
        if not any(name.endswith(".parquet") for name in self.files.names(folder)):
            rows = without_rows(session, schema).coalesce(1)
            rows.write.parquet(folder, mode="overwrite")

    def write_file(self, name: str, content: bytes, run: str = "") -> None:
        """Writes a file of the run, together with others, at the latest when it is published.

        `run`: an earlier run into whose folder the file is written; "" for this run's.
        """
        self._waiting[f"{self._home_of(run or self.run)}/{name}"] = content
        size = sum(map(len, self._waiting.values()))
        if size > _BYTES_AT_ONCE or len(self._waiting) >= _FILES_AT_ONCE:
            self.flush()

    def has_file(self, name: str, run: str) -> bool:
        """Returns True if a run's folder has this file."""
        return self.files.is_folder(f"{self._home_of(run)}/{name}") is False

    def flush(self) -> None:
        """Writes all collected files before any later one."""
        self.files.write(self._waiting)
        self._written += self._waiting
        self._waiting = {}

    def write_summary(self, account: str, summary: Any) -> None:
        """Writes an account's summary."""
        self.write_of_account(_SUMMARIES, account, summary)

    def write_group(self, account: str, group: Any) -> None:
        """Writes an account's groups, which earlier releases do not read."""
        self.write_of_account(_GROUPS, account, group)

    def write_of_account(self, folder: str, account: str, content: Any, run: str = "") -> None:
        """Writes an account's file in one of a run's folders, as `write_file`."""
        text = json.dumps(content, separators=_COMPACT)
        self.write_file(f"{folder}/{_file_name(account)}.json", text.encode(), run)

    def write_page(self, page: str) -> None:
        """Writes the page."""
        self.write_file(f"{self.report}.html", page.encode())

    def _check_written(self) -> None:
        """Raises OSError if a written file does not exist."""
        by_folder: dict[str, set[str]] = {}
        for path in self._written:
            folder, _, name = path.rpartition("/")
            by_folder.setdefault(folder, set()).add(name)
        for folder, names in by_folder.items():
            if not names <= set(self.files.names(folder)):
                raise OSError(errno.EIO, "not all files that were written are there", folder)

    def publish(
        self,
        state: Mapping[str, Any],
        parts: Iterable[Part],
        *,
        propose: str | None = None,
        documents_run: str = "",
    ) -> list[str]:
        """Makes this run's outputs the current ones, or writes a proposal under a name.

        Returns the names of documents whose copies have another content. Raises Outdated.
        """
        kept = sorted(parts, key=lambda part: (part.dataset, part.part, part.run))
        lines = [{"report": self.report, "run": self.run, **state}]
        if _FORMAT in state:
            lines.append({"report": self.report, "dataset": _FORMAT, "part": str(state[_FORMAT])})
        lines += [{"report": self.report, **asdict(part)} for part in kept]
        proposal = Proposal(
            report=self.report,
            run=self.run,
            began_from=self.published.run,
            pointer="".join(f"{json.dumps(line)}\n" for line in lines),
            documents_run=documents_run,
        )
        text = proposal.as_text().encode()
        self.write_file("proposal.json", text)
        self.flush()
        self._check_written()
        with suppress(OSError, Py4JJavaError):  # a later run tries again
            self._remove_old(kept)
        if propose is not None:
            self._moving = True
            name = f"{PROPOSALS}/{self.report}/{propose}.json"
            self.files.replace(f"{self.folder}/{name}", text)
            return []
        place = self._place()
        if place is None:
            # Hadoop has no conditional writes: a separate step publishes in a bucket.
            raise BadInput(f"{self.folder}: give --propose NAME, and publish that proposal")
        with place.locked(self.report):
            self._moving = True
            if swap(place, proposal) == OUTDATED:
                self._moving = False
                raise Outdated
            return copy_documents(place, proposal).different

    def finish_copies(self, documents_run: str) -> list[str]:
        """Copies missing documents of the published run. Returns the names as `publish` does."""
        place = self._place()
        if place is None or not documents_run:
            return []
        proposal = Proposal(
            report=self.report,
            run=self.published.run,
            began_from="",
            pointer="",
            documents_run=documents_run,
        )
        with place.locked(self.report):
            return copy_documents(place, proposal).different

    def _home_of(self, run: str) -> str:
        return f"{self.folder}/{RUNS}/{self.report}/{run}"

    def discard(self) -> None:
        """Removes the files of a failed run, as far as possible.

        Removes nothing after the pointer's write began: its answer may be lost, and readers may
        use the files.
        """
        for home in () if self._moving else self._homes():
            with suppress(OSError, Py4JJavaError):
                for run in (self.run, f"{self.run}{FOLDED}"):
                    self.files.remove(f"{home}/{run}")

    def summarized_accounts(self) -> set[str]:
        """Returns the accounts with a summary in the current run."""
        home = f"{self._home_of(self.published.run)}/{_SUMMARIES}"
        names = self.files.names(home) if self.published.run else []
        return {unquote(name.removesuffix(".json")) for name in names if name.endswith(".json")}

    def _homes(self) -> list[str]:
        """Returns the folders that contain a folder for each run."""
        tables = [f"{self.folder}/{TABLES}/{table}" for table in self._tables]
        return [*tables, f"{self.folder}/{RUNS}/{self.report}"]

    def _part_folder(self, part: Part) -> str:
        return f"{self.folder}/{TABLES}/{part.dataset}/{part.run}/{_PART}={part.part}"

    def _remove_old(self, kept: Sequence[Part]) -> None:
        """Removes folders of runs that no pointer names, except runs of the last day.

        A run of the last day may still be at work. The parts of the previous pointer stay, too: a
        reader may just have read it.
        """
        begun = compact_time(self.generated_ms - DAY_MS)
        named = {(part.dataset, part.run) for part in (*kept, *self.published.parts)}
        runs = {self.run, self.published.run, *(run for _, run in named)}
        for home in self._homes():
            table = home.rpartition("/")[2]
            of_table = home.startswith(f"{self.folder}/{TABLES}/")
            for run in self.files.names(home):
                is_kept = (table, run) in named if of_table else run in runs
                if not is_kept and run < begun:
                    self.files.remove(f"{home}/{run}")

    def _check_places(self) -> None:
        """Raises BadInput if a file or folder blocks a path that a run will write.

        Call it first: a run that cannot be published need not be computed.
        """
        above = [f"{self.folder}/{name}" for name in (CURRENT, TABLES, RUNS, DOCUMENTS)]
        for path in (self.folder, *above, *self._homes()):
            if self.files.is_folder(path) is False:
                raise BadInput(f"{path}: a file, where the reports need a folder")
        if self.files.is_folder(self._pointer):
            raise BadInput(f"{self._pointer}: a folder, where the reports need a file")

    def _read_pointer(self) -> Published:
        try:
            text = self.files.read(self._pointer).decode()
        except FileNotFoundError:
            return Published()
        try:
            state, *lines = map(json.loads, text.splitlines())
            parts = [
                Part(
                    dataset=line["dataset"],
                    part=line["part"],
                    run=line["run"],
                    row_count=line["row_count"],
                    sequence=line.get("sequence", 0),
                )
                for line in lines
                if line["dataset"] != _FORMAT
            ]
            return Published(str(state["run"]), state, parts)
        except (ValueError, KeyError, TypeError):
            raise BadInput(f"{self._pointer}: not a pointer to reports") from None


def _file_name(account: str) -> str:
    return quote(account, safe=_NAME_SAFE)


def _observed(written: Observation, frame: DataFrame) -> int:
    """Returns the number of written rows; counts them if Spark dropped the observation."""
    try:
        return int(written.get["rows"])
    except Py4JJavaError:
        return frame.count()
