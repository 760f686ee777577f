"""CPU seconds, jobs and bytes of a night: the jobs on the state machine's exports.

    python -m infra.bench night_cpu                                   a table, small; by name alone
    python -m infra.bench.measured.night_cpu --items 2000000 --records 300000      ten minutes

Messages are exported in full each night. For Usage a full export begins a week, and the next seven
nights export a day each; a night's job gets all of them. Bytes are from Spark's event log: read
files, and shuffles. Each job has a separate process, so that its seconds include the start of Java.
`--without` removes a setting of ours, to measure its effect.

DuckDB's seconds are for the aggregation alone, over the same files, without ledger, prices, checks
and pages. The hourly usage must be equal; otherwise there is no measurement.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

from ..drawing.tables import show

REPOSITORY = Path(__file__).resolve().parents[3]
sys.path.insert(0, str(REPOSITORY / "spark_emr"))

AT_MS = 1_795_161_600_000
DAY_MS = 86_400_000
NIGHTS = 7
SEED = 1
SETTINGS = ("compiler", "collector", "entries")
"""Our settings: late thorough compiling, the parallel collector, numbers cut out of their text."""


def run() -> None:
    """Measures a small night, and prints a table."""
    _measure_all(100_000, 30_000, [])


def main() -> None:
    """Measures the night of the command line, and prints a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--items", type=int, default=100_000, help="of Messages; 0 = no backlog")
    parser.add_argument("--records", type=int, default=30_000, help="of Usage a week; 0 = no bill")
    parser.add_argument("--without", choices=SETTINGS, action="append", default=[])
    parser.add_argument("--folder", type=Path, help="where exports are kept for another run")
    parser.add_argument("--job", nargs="+", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.job:
        print(json.dumps(_JOBS[options.job[0]](options.job[1:], options.without)))
        return
    _measure_all(options.items, options.records, options.without, options.folder)


def _measure_all(items: int, records: int, without: list[str], folder: Path | None = None) -> None:
    with tempfile.TemporaryDirectory() as temporary:
        home = folder or Path(temporary)
        named = [*_backlogs(home, items), *_bills(home, records)]
        output = Path(temporary) / "reports"
        rows = [(name, *_measured(job, output, without)) for name, job in named]
    heads = ("job", "CPU s", "jobs", "MB of exports", "MB read", "MB shuffled", "DuckDB's CPU s")
    left_out = f", without {', '.join(without)}" if without else ""
    show(
        f"A night of {items:,} messages and {records:,} usage records a week{left_out}", heads, rows
    )


def _backlogs(home: Path, items: int) -> Iterator[tuple[str, list[str]]]:
    """Yields the backlog job of a night, and the same with a window after a full export."""
    if not items:
        return
    whole, window = _message_exports(home / f"messages-{items}", items)
    yield "backlog, a whole export", ["backlog", str(whole)]
    yield "backlog, and a window of 5 %", ["backlog", str(whole), str(window)]


def _bills(home: Path, records: int) -> Iterator[tuple[str, list[str]]]:
    """Yields the billing job at the week's begin, in its nights, and at the next week's begin."""
    if not records:
        return
    whole, *windows, next_whole = map(str, _usage_exports(home / f"usage-{records}", records))
    yield "billing, a whole export", ["billing", whole]
    yield "billing, and the first night's window", ["billing", whole, *windows[:1]]
    yield "billing, and five more nights at once", ["billing", whole, *windows[:-1]]
    yield "billing, and the seventh night's window", ["billing", whole, *windows]
    yield "billing, the next whole export", ["billing", next_whole]


def _message_exports(root: Path, items: int) -> list[Path]:
    from export_writer import ExportWriter
    from synthetic_messages import Messages
    from synthetic_usage import change

    if not (made := _found(root)):
        print(f"making exports of {items:,} messages", file=sys.stderr)
        messages = Messages(seed=SEED, items=items, at_ms=AT_MS - DAY_MS, resources=400)
        messages.export(root)
        writer = ExportWriter(root=root, table="Messages", at_ms=AT_MS, since_ms=AT_MS - DAY_MS)
        changed = list(messages.items_of(0, items // 20))
        writer.write_files((change(item, AT_MS - 9) for item in changed), files=2)
        writer.finish()
        made = _found(root)
    return made


def _usage_exports(root: Path, records: int) -> list[Path]:
    from export_writer import ExportWriter
    from synthetic_usage import ITEMS_IN_A_FILE, Usage, change

    if not (made := _found(root)):
        print(f"making exports of {records:,} usage records", file=sys.stderr)
        end_ms = AT_MS + NIGHTS * DAY_MS
        usage = Usage(
            seed=SEED, records=2 * records, at_ms=end_ms, days=2 * NIGHTS, resources=400,
            entries_most=20,
        )  # fmt: skip
        written = list(usage.written())
        # By time: the next full export is a minute after the last night's window.
        for at_ms in (AT_MS, end_ms + 60_000):
            whole = ExportWriter(root=root, table="Usage", at_ms=at_ms)
            lines = (f'{{"Item":{item}}}' for item, when_ms in written if when_ms < at_ms)
            whole.write_files(lines, files=-(-records // ITEMS_IN_A_FILE))
            whole.finish()
        for since_ms in range(AT_MS, end_ms, DAY_MS):
            until_ms = since_ms + DAY_MS
            night = ExportWriter(root=root, table="Usage", at_ms=until_ms, since_ms=since_ms)
            own = [each for each in written if since_ms <= each[1] < until_ms]
            night.write_files((change(item, when_ms) for item, when_ms in own), files=2)
            night.finish()
        made = _found(root)
    return made


def _found(root: Path) -> list[Path]:
    """Returns the exports below a folder, by time."""
    return sorted(path.parent for path in root.glob("AWSDynamoDB/*/manifest-summary.json"))


def _measured(job: list[str], output: Path, without: list[str]) -> tuple[float | int | str, ...]:
    left_out = [part for name in without for part in ("--without", name)]
    figures = _process([*left_out, "--job", job[0], str(output), *job[1:]])
    beside = _process(["--job", f"duckdb-{job[0]}", str(output), *job[1:]])
    return (*figures.values(), beside.get("cpu", ""))


def _process(arguments: list[str]) -> dict[str, float]:
    """Returns the figures of a process of this program."""
    command = [sys.executable, "-m", "infra.bench.measured.night_cpu", *arguments]
    ended = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, cwd=REPOSITORY)
    found: dict[str, float] = json.loads(ended.stdout.splitlines()[-1])
    return found


def _beside_backlog(places: list[str], _: list[str]) -> dict[str, float]:
    """Returns DuckDB's seconds for a full export; nothing for windows, which it does not merge."""
    from .backlog_cpu import measure_duckdb

    exports = places[1:]
    if len(exports) > 1:
        return {}
    return {"cpu": round(min(measure_duckdb(Path(exports[0]))["cpu_seconds"]), 1)}


def _beside_billing(places: list[str], _: list[str]) -> dict[str, float]:
    """Returns DuckDB's seconds. Raises SystemExit if its sums differ from the job's."""
    import duckdb

    from .duckdb_usage import kept_query, usage_query

    output, *exports = places
    files = [[str(path) for path in _files_of(Path(each))] for each in exports]
    windows = [path for own in files[1:] for path in own]
    connection = duckdb.connect()
    connection.execute(f"SET threads = {os.cpu_count()}")
    start = time.process_time()
    sums = connection.execute(usage_query(files[0], windows)).fetchall()
    cpu_seconds = time.process_time() - start
    if sums != connection.execute(kept_query(output)).fetchall():
        raise SystemExit("DuckDB's sums differ from the job's")
    return {"cpu": round(cpu_seconds, 1)}


def _run_job(name: str, places: list[str], without: list[str]) -> dict[str, float]:
    """Runs one job in this process. Returns its figures."""
    from cirrusmq_reports import backlog_command, billing_command
    from cirrusmq_reports.session import make_session
    from local_run import LOCAL_CONFIGURATION, prepare_java

    prepare_java()
    output, *exports = places
    java: list[int] = []
    with tempfile.TemporaryDirectory() as log:
        events = {"spark.eventLog.enabled": "true", "spark.eventLog.dir": f"file://{log}"}
        events |= {"spark.eventLog.compress": "false", "spark.eventLog.rolling.enabled": "false"}
        settings = _left_out(LOCAL_CONFIGURATION | events, without)
        sessions: list[Any] = []

        def session() -> Any:
            if not sessions:
                sessions.append(make_session("bench", settings))
            return sessions[0]

        arguments = [part for each in exports for part in ("--export", each)]
        arguments += ["--output", output]
        if name == "billing":
            card = str(REPOSITORY / "infra/rate_card.yaml")
            code = billing_command.run([*arguments, "--rate-card", card], session)
        else:
            code = backlog_command.run(arguments, session)
        if code:
            raise SystemExit("the job failed")
        java.append(sessions[0].sparkContext._jvm.java.lang.ProcessHandle.current().pid())
        cpu_seconds = _cpu_seconds(java[0])
        sessions[0].stop()
        seen = _logged(Path(log))
    size = sum(path.stat().st_size for each in exports for path in _files_of(Path(each)))
    return {
        "cpu": round(cpu_seconds, 1),
        "jobs": seen["jobs"],
        "exports": round(size / 1e6, 1),
        "read": round(seen["read"] / 1e6, 1),
        "shuffled": round(seen["shuffled"] / 1e6, 1),
    }


def _left_out(settings: dict[str, str], without: list[str]) -> dict[str, str]:
    from cirrusmq_reports.session import JAVA_OPTIONS
    from cirrusmq_reports.transforms import messages

    options = JAVA_OPTIONS.split()
    if "compiler" in without:
        options = [each for each in options if "Tier4" not in each]
    if "collector" in without:
        options = [each for each in options if "ParallelGC" not in each]
    if "entries" in without:
        messages.whole_entry = _read_as_json  # type: ignore[attr-defined]
    name = "spark.driver.extraJavaOptions"
    return settings | {name: settings[name].replace(JAVA_OPTIONS, " ".join(options))}


def _read_as_json(text: Any) -> Any:
    from pyspark.sql import functions as sf

    return sf.get_json_object(text, "$.N").try_cast("bigint")


def _files_of(export: Path) -> list[Path]:
    """Returns the data files that an export's listing names."""
    root = export.parents[1]
    lines = (export / "manifest-files.json").read_text().splitlines()
    return [root / json.loads(line)["dataFileS3Key"] for line in lines]


def _logged(log: Path) -> Counter[str]:
    """Returns jobs, and bytes that tasks read from files and wrote for shuffles."""
    seen = Counter[str]()
    for path in log.glob("[!.]*"):
        for event in map(json.loads, path.read_text().splitlines()):
            seen["jobs"] += event["Event"] == "SparkListenerJobStart"
            metrics = event.get("Task Metrics") or {}
            seen["read"] += metrics.get("Input Metrics", {}).get("Bytes Read", 0)
            written = metrics.get("Shuffle Write Metrics", {})
            seen["shuffled"] += written.get("Shuffle Bytes Written", 0)
    return seen


def _cpu_seconds(java: int) -> float:
    """Returns user and system time of this process and of Java's."""
    own = os.times()
    fields = Path(f"/proc/{java}/stat").read_text().rpartition(")")[2].split()
    return own.user + own.system + (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


_JOBS: dict[str, Callable[[list[str], list[str]], dict[str, float]]] = {
    "backlog": partial(_run_job, "backlog"),
    "billing": partial(_run_job, "billing"),
    "duckdb-backlog": _beside_backlog,
    "duckdb-billing": _beside_billing,
}


if __name__ == "__main__":
    main()
