"""CPU seconds of the backlog job beside DuckDB's for the same aggregation of the same files.

    python -m infra.bench backlog_cpu                                   250,000 and 500,000 items
    python -m infra.bench.measured.backlog_cpu --items 250000 2000000   the full size, ten minutes
    python -m infra.bench.measured.backlog_cpu --items 1000000 2000000 4000000 8000000

Spark and DuckDB must agree on every figure of every resource; otherwise there is no measurement.

The job's figure is for all of its work: checksums, reading, counting, Parquet, pages. *Cold*
includes the start of Python and Java; *warm* is a second pass in the same session. DuckDB's is for
the query alone, without checksums, the better of two passes. Every measurement has a separate
process. Memory is the maximum resident memory of Python and Java in all passes.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypeAlias

from ..drawing.tables import show

REPOSITORY = Path(__file__).resolve().parents[3]
sys.path.insert(0, str(REPOSITORY / "spark_emr"))

AT_MS = 1_795_161_600_000
SEED = 1
PASSES = 3
ITEMS = (250_000, 500_000)
WARM_GOAL, COLD_GOAL, MEMORY_GOAL_MB = 0.90, 1.8, 1_500

Figures: TypeAlias = dict[str, list[Any]]
"""A resource's id → the figures of `duckdb_backlog`."""


def run() -> None:
    """Measures the sizes that take some minutes, and prints a table."""
    with tempfile.TemporaryDirectory() as temporary:
        _compare_all(Path(temporary), ITEMS)


def main() -> None:
    """Measures the sizes of the command line, and prints a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--items", type=int, nargs="+", default=ITEMS)
    parser.add_argument("--folder", type=Path, help="where exports are kept for another run")
    parser.add_argument("--measure", choices=sorted(_MEASURES), help=argparse.SUPPRESS)
    parser.add_argument("--export", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.measure:
        print(json.dumps(_MEASURES[options.measure](options.export)))
        return
    with tempfile.TemporaryDirectory() as temporary:
        _compare_all(options.folder or Path(temporary), options.items)


def _compare_all(folder: Path, sizes: Sequence[int]) -> None:
    _print_table([_compare(_make_export(folder, items), items) for items in sizes])


def _make_export(folder: Path, items: int) -> Path:
    from synthetic_messages import Messages

    root = folder / f"messages-{items}"
    made = sorted(root.glob("AWSDynamoDB/*/manifest-summary.json"))
    if made:
        return made[0].parent
    print(f"making an export of {items:,} items", file=sys.stderr)
    return Messages(seed=SEED, items=items, at_ms=AT_MS, resources=400).export(root)


def _compare(export: Path, items: int) -> dict[str, Any]:
    print(f"measuring {items:,} items", file=sys.stderr)
    results = {name: _measured(name, export) for name in _MEASURES}
    _check_equal(results["spark"]["figures"], results["duckdb"]["figures"])
    size = sum(path.stat().st_size for path in (export / "data").iterdir())
    return {
        "items": items,
        "megabytes": size / 1e6,
        "cold": results["spark"]["cpu_seconds"][0],
        "warm": min(results["spark"]["cpu_seconds"][1:]),
        "duckdb": min(results["duckdb"]["cpu_seconds"]),
        "resident": results["spark"]["resident_megabytes"],
    }


def _check_equal(spark: Figures, duckdb: Figures) -> None:
    for identity in sorted({*spark, *duckdb}):
        pair = spark.get(identity), duckdb.get(identity)
        if pair[0] != pair[1]:
            raise SystemExit(f"{identity}: Spark has {pair[0]}, DuckDB {pair[1]}")


def _measured(name: str, export: Path) -> dict[str, Any]:
    module = [sys.executable, "-m", "infra.bench.measured.backlog_cpu"]
    command = [*module, "--measure", name, "--export", str(export.resolve())]
    run = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, cwd=REPOSITORY)
    result: dict[str, Any] = json.loads(run.stdout.splitlines()[-1])
    return result


def measure_spark(export: Path) -> dict[str, Any]:
    """Returns the job's CPU seconds: from the start, then again in the warm session."""
    from cirrusmq_reports import backlog_command
    from cirrusmq_reports.session import make_session
    from local_run import LOCAL_CONFIGURATION, prepare_java

    prepare_java()
    cpu_seconds: list[float] = []
    figures: Figures = {}
    java: list[int] = []

    def session() -> Any:
        made = make_session("bench", LOCAL_CONFIGURATION)
        gateway: Any = made.sparkContext._jvm
        java[:] = [gateway.java.lang.ProcessHandle.current().pid()]
        return made

    before = 0.0
    for _ in range(PASSES):
        with tempfile.TemporaryDirectory() as output:
            arguments = ["--export", str(export), "--output", output]
            if backlog_command.run(arguments, session):
                raise SystemExit("the job failed")
            after = _cpu_seconds() + _cpu_seconds_of(java[0])
            cpu_seconds.append(after - before)
            before = after
            figures = _reported(Path(output))
    resident = _most_resident_megabytes(os.getpid()) + _most_resident_megabytes(java[0])
    return {"cpu_seconds": cpu_seconds, "figures": figures, "resident_megabytes": resident}


def _reported(output: Path) -> Figures:
    """Returns the job's figures; without an export of the directory a name is the id."""
    from cirrusmq_reports.figures import AGES, COUNTS

    return {
        row["name"]: [
            *(row[name] for name in (*COUNTS, *AGES)),
            *row["receive_counts"].values(),
            *row["sizes"].values(),
            row["hottest_partition"],
            row["hottest_partition_share"],
        ]
        for path in output.glob("runs/backlog/*/summaries/*.json")
        for row in json.loads(path.read_text())["resources"]
    }


def measure_duckdb(export: Path) -> dict[str, Any]:
    """Returns the query's CPU seconds, twice."""
    import duckdb

    from .duckdb_backlog import backlog_query

    files = [str(path) for path in sorted((export / "data").iterdir())]
    connection = duckdb.connect()
    connection.execute(f"SET threads = {os.cpu_count()}")
    cpu_seconds: list[float] = []
    figures: Figures = {}
    for _ in range(2):
        start = time.process_time()
        rows = connection.execute(backlog_query(files, AT_MS)).fetchall()
        cpu_seconds.append(time.process_time() - start)
        figures = {identity: list(found) for identity, *found in rows}
    return {"cpu_seconds": cpu_seconds, "figures": figures}


_MEASURES = {"spark": measure_spark, "duckdb": measure_duckdb}


def _print_table(rows: list[dict[str, Any]]) -> None:
    heads = (
        "items", "MB gz", "cold", "warm", "DuckDB", "cold / DuckDB", "warm / DuckDB",
        "warm µs/item", "MB resident",
    )  # fmt: skip
    figures = ("items", "megabytes", "cold", "warm", "duckdb")
    show(
        f"CPU seconds of the backlog job (goals at two million items: cold {COLD_GOAL}, "
        f"warm {WARM_GOAL} times DuckDB's, {MEMORY_GOAL_MB} MB)",
        heads,
        [
            (
                *(row[name] for name in figures),
                row["cold"] / row["duckdb"],
                row["warm"] / row["duckdb"],
                row["warm"] / row["items"] * 1e6,
                row["resident"],
            )
            for row in rows
        ],
    )


def _cpu_seconds() -> float:
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


def _cpu_seconds_of(process: int) -> float:
    """Returns user and system time of a running process, from the kernel's table."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _most_resident_megabytes(process: int) -> float:
    """Returns the maximum resident memory of a running process."""
    status = Path(f"/proc/{process}/status").read_text()
    (kilobytes,) = (line.split()[1] for line in status.splitlines() if line.startswith("VmHWM:"))
    return int(kilobytes) * 1024 / 1e6


if __name__ == "__main__":
    main()
