"""The tables that an analyst queries: with DuckDB here, and with Athena as the template says."""

from __future__ import annotations

import json
import re
from collections import Counter
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import pytest
from tests.spark.job_runs import AT_MS, DAY_MS, REPOSITORY, Jobs, rows_in, summaries_in

from cirrusmq_local.cloud.cloudformation import read
from cirrusmq_reports.backlog_groups import messages_of
from cirrusmq_reports.currencies import rounded
from reports import tables
from synthetic_messages import Messages, directory_export
from synthetic_usage import Usage

TABLES = REPOSITORY / "spark_emr/tables.sql"
README = REPOSITORY / "spark_emr/README.md"
TYPES = {"STRING": "VARCHAR", "INT": "INTEGER", "BINARY": "BLOB"}


@pytest.fixture(scope="module")
def reports(tmp_path_factory: pytest.TempPathFactory, spark: Any) -> Path:
    """Bills of two nights, so that the files of the first are there too; backlogs of two days."""
    root = tmp_path_factory.mktemp("reports")
    jobs = Jobs(lambda: spark)
    output = root / "out"
    usage = Usage(seed=3, records=150, at_ms=AT_MS, days=25).export(root / "u")
    for _ in range(2):
        assert jobs.bill(output, [usage], "--accept-gaps").code == 0
    days = [
        Messages(seed=4, items=80, at_ms=at_ms, resources=5) for at_ms in (AT_MS, AT_MS + DAY_MS)
    ]
    names = directory_export(root / "d", AT_MS + DAY_MS, days[-1].all_resources())
    exports = [messages.export(root / "m") for messages in days]
    assert jobs.report_backlog(output, exports, [names]).code == 0
    return output


@pytest.fixture
def database(reports: Path, monkeypatch: pytest.MonkeyPatch) -> duckdb.DuckDBPyConnection:
    monkeypatch.chdir(reports)
    connection = duckdb.connect()
    connection.execute(TABLES.read_text())
    return connection


@pytest.mark.long
def test_views_show_each_row_of_the_current_runs_once(
    database: duckdb.DuckDBPyConnection, reports: Path
) -> None:
    days: Counter[tuple[str, ...]] = Counter()
    for row in rows_in(reports, "usage").collect():
        days[row["account"], row["resource"], row["kind"], row["day"]] += row["count"]
    rows = database.execute("SELECT account, resource, kind, day, count FROM usage_by_day")
    assert {row[:4]: row[4] for row in rows.fetchall()} == dict(days)
    totals = database.execute(
        "SELECT account, month, currency, SUM(amount) FROM invoices_by_month GROUP BY ALL"
    ).fetchall()
    assert {row[:3]: rounded(row[3], row[2]) for row in totals} == {
        (account, invoice["month"], invoice["currency"]): Decimal(invoice["total"])
        for account, summary in summaries_in(reports, "billing").items()
        for invoice in summary["invoices"]
    }
    issued = database.execute("SELECT account, month, number, total FROM documents_by_month")
    assert {row[:3]: row[3] for row in issued.fetchall()} == {
        (account, invoice["month"], invoice["number"]): Decimal(invoice["total"])
        for account, summary in summaries_in(reports, "billing").items()
        for invoice in summary["invoices"]
        if invoice["number"]
    }
    points = database.execute(
        "SELECT day, COUNT(*), COUNT(DISTINCT id) FROM backlog_by_day GROUP BY 1"
    )
    assert sorted(points.fetchall()) == [("2026-11-20", 5, 5), ("2026-11-21", 5, 5)]
    labels = database.execute(
        "SELECT account, label, value, SUM(resources), SUM(active + inactive + delayed)"
        " FROM backlog_labels_by_day WHERE day = '2026-11-21' GROUP BY ALL"
    ).fetchall()
    summaries = summaries_in(reports, "backlog")
    assert labels
    for account, label, value, count, messages in labels:
        having = [
            each for each in summaries[account]["resources"] if each["labels"].get(label) == value
        ]
        assert (len(having), sum(map(messages_of, having))) == (count, messages)


@pytest.mark.long
def test_the_readmes_query_runs(database: duckdb.DuckDBPyConnection) -> None:
    query = re.search(r"```sql\n(.*?)```", README.read_text(), re.DOTALL)
    assert query is not None
    rows = database.execute(query[1]).fetchall()
    assert rows
    assert all(isinstance(row[-1], Decimal) for row in rows)


def glue_tables() -> dict[str, dict[str, Any]]:
    template = read(REPOSITORY / "infra/reports/template.yaml")
    return {
        held["Properties"]["TableInput"]["Name"]: held["Properties"]["TableInput"]
        for held in template["Resources"].values()
        if held["Type"] == "AWS::Glue::Table"
    }


@pytest.mark.long
def test_glue_has_the_columns_of_the_files_and_views(database: duckdb.DuckDBPyConnection) -> None:
    tables = glue_tables()
    assert len(tables) == 18
    for name, table in tables.items():
        described = database.execute(f"DESCRIBE {name}").fetchall()
        # Athena's names are in small letters.
        found = {row[0].lower(): row[1] for row in described}
        columns = {
            column["Name"]: TYPES.get(column["Type"].upper(), column["Type"].upper())
            for column in table["StorageDescriptor"]["Columns"]
        }
        assert found == columns, name


def test_athenas_views_are_those_of_duckdb() -> None:
    views = dict(re.findall(r"VIEW (\w+) AS\n(.*?);\n", TABLES.read_text(), re.DOTALL))
    seen = 0
    for name, table in glue_tables().items():
        if table["TableType"] != "VIRTUAL_VIEW":
            continue
        text = table["ViewOriginalText"]["Fn::Sub"][1]["View"]["Fn::Base64"]["Fn::Sub"]
        view = json.loads(text)
        assert view["originalSql"].split() == views[name].split()
        columns = table["StorageDescriptor"]["Columns"]
        assert [column["name"] for column in view["columns"]] == [c["Name"] for c in columns]
        seen += 1
    assert seen == 9


def test_tables_for_duckdb_and_athena_are_made_of_the_schemas() -> None:
    for path, text in tables.made().items():
        assert path.read_text() == text, f"{path}: make reports-tables"
