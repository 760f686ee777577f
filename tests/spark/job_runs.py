"""Running the jobs in this process, and looking at what they left."""

from __future__ import annotations

import hashlib
import io
import json
from collections.abc import Callable, Sequence
from contextlib import redirect_stderr
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from urllib.parse import unquote

from pyspark.sql import DataFrame, SparkSession

from cirrusmq.metering import reports
from cirrusmq_reports import backlog_command, billing_command

REPOSITORY = Path(__file__).parents[2]
RATE_CARD = REPOSITORY / "infra/rate_card.yaml"
AT_MS = 1_795_161_600_000  # 2026-11-20T08:00:00Z
HOUR_MS, DAY_MS = 3_600_000, 86_400_000


@dataclass(frozen=True)
class Ended:
    """How a job ended."""

    code: int
    errors: str

    @property
    def message(self) -> str:
        """The one line that it said."""
        assert self.errors.count("\n") == 1, self.errors
        return self.errors.strip()


def assert_refused(ended: Ended, *words: str) -> None:
    """A refusal has the exit code 2, and these words in one line."""
    assert ended.code == 2
    for word in words:
        assert word in ended.message


class Jobs:
    """Runs the jobs with their command lines, in this process."""

    def __init__(self, session: Callable[[], SparkSession]) -> None:
        self.session = session

    def bill(
        self,
        output: Path | str,
        exports: Sequence[Path | str],
        *more: str,
        card: Path = RATE_CARD,
    ) -> Ended:
        arguments = [*_exports(exports), "--rate-card", str(card), "--output", str(output), *more]
        return self._run(billing_command.run, arguments)

    def report_backlog(
        self,
        output: Path | str,
        exports: Sequence[Path | str],
        directories: Sequence[Path | str] = (),
        *more: str,
    ) -> Ended:
        named = [part for path in directories for part in ("--directory-export", str(path))]
        arguments = [*_exports(exports), *named, "--output", str(output), *more]
        return self._run(backlog_command.run, arguments)

    def start(self, entry_point: str, arguments: Sequence[str]) -> Ended:
        """Run a job as its starter names it: `billing_job.py` or `backlog_job.py`."""
        job = {"billing_job.py": billing_command.run, "backlog_job.py": backlog_command.run}
        return self._run(job[entry_point], arguments)

    def _run(
        self,
        job: Callable[[Sequence[str], Callable[[], SparkSession]], int],
        arguments: Sequence[str],
    ) -> Ended:
        with redirect_stderr(io.StringIO()) as errors:
            code = job(arguments, self.session)
        return Ended(code, errors.getvalue())


def data_files(export: Path) -> list[Path]:
    """The data files of a full export."""
    return sorted((export / "data").iterdir())


def fingerprints(folder: Path) -> dict[str, str]:
    """Path → digest of every file in a folder."""
    return {
        str(path.relative_to(folder)): hashlib.md5(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def run_of(output: Path, report: str) -> Path:
    """The folder of the run that the report's pointer names."""
    line, *_ = (output / f"current/{report}.json").read_text().splitlines()
    return output / "runs" / report / str(json.loads(line)["run"])


def page_in(output: Path, report: str) -> Path:
    """The report's current page."""
    return run_of(output, report) / f"{report}.html"


def summaries_in(output: Path, report: str) -> dict[str, Any]:
    """Account -> its current summary; of billing with all lines, as the service reads it."""
    if report == "billing":
        accounts = [unquote(path.stem) for path in run_of(output, report).glob("accounts/*.json")]
        return {account: answer_of(output, account) for account in sorted(accounts)}
    found = run_of(output, report).glob("summaries/*.json")
    return {path.stem: json.loads(path.read_text()) for path in sorted(found)}


def answer_of(output: Path, account: str) -> dict[str, Any]:
    """An account's bills, as the service reads them."""

    def read(name: str) -> bytes | None:
        path = output / name
        return path.read_bytes() if path.is_file() else None

    # It reads reports alone as long as all lines are on one page.
    core: Any = SimpleNamespace(read_report=read)
    answer, more = reports.billing(core, account, lines=1_000_000)
    assert more is None
    return answer


def rows_in(output: Path, table: str) -> DataFrame:
    """The rows of the parts of a table that the pointers name."""
    parts = [
        entry
        for pointer in (output / "current").glob("*.json")
        for entry in map(json.loads, pointer.read_text().splitlines()[1:])
        if entry["dataset"] == table
    ]
    folders = [f"{output}/tables/{table}/{each['run']}/part={each['part']}" for each in parts]
    session = SparkSession.active()
    rows = session.read.parquet(*folders)
    assert rows.count() == sum(entry["row_count"] for entry in parts)
    return rows


def input_bytes(spark: SparkSession) -> int:
    """What Spark has read of files so far."""
    gateway = spark.sparkContext._gateway
    assert gateway is not None
    found = gateway.jvm.org.apache.hadoop.fs.FileSystem.getAllStatistics()
    return sum(each.getBytesRead() for each in found)


def shuffled_bytes(spark: SparkSession) -> dict[int, int]:
    """Stage → what it has written for others to read, of the newest thousand stages."""
    gateway = spark.sparkContext._gateway
    assert gateway is not None
    quantiles = gateway.new_array(gateway.jvm.double, 0)
    statuses = gateway.jvm.java.util.ArrayList()
    store = spark.sparkContext._jsc.sc().statusStore()
    listed = store.stageList(statuses, False, False, quantiles, statuses)
    stages = [listed.apply(place) for place in range(listed.size())]
    return {stage.stageId(): stage.shuffleWriteBytes() for stage in stages}


def _exports(folders: Sequence[Path | str]) -> list[str]:
    return [part for folder in folders for part in ("--export", str(folder))]
