"""CPU seconds of the backlog job beside DuckDB's for the same aggregation of the same files.

    python infra/bench/spark_backlog.py [--items 250000 2000000] [--folder …]

The job's figure is everything that it does: checksums, reading, counting, Parquet, pages. *Cold*
has the start of Python and Java in it; *warm* is a second pass in the same session. DuckDB's is
the query alone, without checksums, the better of two passes. Every measurement has a process of
its own.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

REPOSITORY = Path(__file__).parents[2]
sys.path.insert(0, str(REPOSITORY / "spark_emr"))

AT_MS = 1_795_161_600_000
SEED = 1
PASSES = 3
WARM_GOAL, COLD_GOAL = 1.0, 2.5
_TOTALS = ("active", "delayed", "rewindable", "dead", "expired", "bytes")


def main() -> None:
    """Measure, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--items", type=int, nargs="+", default=[250_000, 500_000, 2_000_000])
    parser.add_argument("--folder", type=Path, help="where exports are kept for another run")
    parser.add_argument("--measure", choices=sorted(_MEASURES), help=argparse.SUPPRESS)
    parser.add_argument("--export", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.measure:
        print(json.dumps(_MEASURES[options.measure](options.export)))
        return
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.folder or Path(temporary)
        rows = [_compare(_make_export(folder, items), items) for items in options.items]
    _print_table(rows)


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
    if results["spark"]["totals"] != results["duckdb"]["totals"]:
        raise SystemExit(f"the totals differ: {results}")
    size = sum(path.stat().st_size for path in (export / "data").iterdir())
    return {
        "items": items,
        "megabytes": size / 1e6,
        "cold": results["spark"]["cpu_seconds"][0],
        "warm": min(results["spark"]["cpu_seconds"][1:]),
        "duckdb": min(results["duckdb"]["cpu_seconds"]),
    }


def _measured(name: str, export: Path) -> dict[str, Any]:
    command = [sys.executable, __file__, "--measure", name, "--export", str(export)]
    run = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    result: dict[str, Any] = json.loads(run.stdout.splitlines()[-1])
    return result


def measure_spark(export: Path) -> dict[str, Any]:
    """The job's CPU seconds: from nothing, then again in the warm session."""
    from cirrusmq_reports import backlog_command
    from cirrusmq_reports.session import make_session
    from local_run import LOCAL_CONFIGURATION, prepare_java

    prepare_java()
    cpu_seconds, totals = [], {}
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
            summaries = Path(output).glob("summaries/backlog/*.json")
            rows = [row for path in summaries for row in json.loads(path.read_text())["resources"]]
            totals = {name: sum(row[name] for row in rows) for name in _TOTALS}
    return {"cpu_seconds": cpu_seconds, "totals": totals}


def measure_duckdb(export: Path) -> dict[str, Any]:
    """The query's CPU seconds, twice."""
    import duckdb

    files = [str(path) for path in sorted((export / "data").iterdir())]
    connection = duckdb.connect()
    connection.execute(f"SET threads = {os.cpu_count()}")
    cpu_seconds, totals = [], {}
    for _ in range(2):
        start = time.process_time()
        row = connection.execute(_duckdb_query(files)).fetchone()
        cpu_seconds.append(time.process_time() - start)
        assert row is not None
        totals = dict(zip(_TOTALS, map(int, row), strict=True))
    return {"cpu_seconds": cpu_seconds, "totals": totals}


_MEASURES = {"spark": measure_spark, "duckdb": measure_duckdb}


def _duckdb_query(files: list[str]) -> str:
    from cirrusmq_reports.backlog import RECEIVE_RANGES, SIZE_RANGES, range_name

    histograms = [
        f"count_if(kept AND {value} BETWEEN {low} AND {2**60 if high is None else high}) "
        f"AS {range_name(name, low, high)}"
        for name, value, ranges in (("receives", "r", RECEIVE_RANGES), ("size", "z", SIZE_RANGES))
        for low, high in ranges
    ]
    numbers = "STRUCT(L STRUCT(N VARCHAR)[])"
    item = (
        f"STRUCT(pk STRUCT(S VARCHAR), v {numbers}, w {numbers}, r {numbers}, z {numbers}, "
        "t STRUCT(N VARCHAR), x STRUCT(N VARCHAR), d STRUCT(B VARCHAR), "
        "expires_at STRUCT(N VARCHAR))"
    )
    return f"""
    WITH parcels AS (
        SELECT Item.pk.S AS pk, Item.v.L AS v, Item.w.L AS w, Item.r.L AS r, Item.z.L AS z,
            Item.t.N::BIGINT AS t, Item.x.N::BIGINT AS x, Item.d IS NOT NULL AS dead,
            Item.expires_at.N::BIGINT AS until
        FROM read_json({files}, format = 'newline_delimited', columns = {{Item: '{item}'}})
        WHERE Item.pk.S[1:2] IN ('Q#', 'R#')),
    messages AS (
        SELECT pk, t, x, dead, until, unnest(v).N::BIGINT AS v,
            coalesce(unnest(w).N, '0')::BIGINT AS w, unnest(r).N::BIGINT AS r,
            unnest(z).N::BIGINT AS z
        FROM parcels),
    states AS (
        SELECT *, ({AT_MS} - t) // 1000 AS age, pk[1] = 'R' AS archived,
            v > 0 AND pk[1] = 'Q' AND x > {AT_MS} AS kept
        FROM messages),
    counts AS (
        SELECT pk,
            CASE WHEN kept THEN
                age - age % (1 << greatest(floor(log2(age + 0.5))::BIGINT - 3, 0))
            END AS bucket,
            count_if(kept) AS kept, count_if(kept AND v + w <= {AT_MS}) AS active,
            count_if(kept AND r = 0 AND v > {AT_MS}) AS delayed,
            count_if(archived AND v = 0 AND until * 1000 > {AT_MS}) AS rewindable,
            count_if(kept AND dead) AS dead,
            count_if(v > 0 AND NOT archived AND NOT kept) AS expired,
            sum(z) FILTER (kept) AS bytes, max(age) FILTER (kept) AS oldest,
            {", ".join(histograms)}
        FROM states GROUP BY ALL),
    aged AS (
        SELECT *, split_part(pk, '#', 2) AS id,
            sum(kept) OVER (PARTITION BY split_part(pk, '#', 2)) AS total,
            sum(kept) OVER (PARTITION BY split_part(pk, '#', 2) ORDER BY bucket) AS up_to_age
        FROM counts),
    resources AS (
        SELECT id, {", ".join(f"sum({name}) AS {name}" for name in _TOTALS)}, max(oldest) AS oldest,
            min(bucket) FILTER (up_to_age * 100 >= total * 95) AS p95
        FROM aged GROUP BY id)
    SELECT {", ".join(f"sum({name})" for name in _TOTALS)} FROM resources
    """


def _print_table(rows: list[dict[str, Any]]) -> None:
    heads = (
        "items",
        "MB gz",
        "cold",
        "warm",
        "DuckDB",
        "cold/DuckDB",
        "warm/DuckDB",
        "warm µs/item",
    )
    print("".join(f"{head:>14}" for head in heads))
    for row in rows:
        ratios = [row["cold"] / row["duckdb"], row["warm"] / row["duckdb"]]
        numbers = [row["megabytes"], row["cold"], row["warm"], row["duckdb"], *ratios]
        micros = row["warm"] / row["items"] * 1e6
        print(f"{row['items']:>14,}" + "".join(f"{n:>14.2f}" for n in [*numbers, micros]))
    print(f"goals at the largest: cold {COLD_GOAL}, warm {WARM_GOAL} times DuckDB's CPU seconds")


def _cpu_seconds() -> float:
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


def _cpu_seconds_of(process: int) -> float:
    """User and system time of a running process, from the kernel's table of processes."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


if __name__ == "__main__":
    main()
