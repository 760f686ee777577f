"""The tables and views of the reports, for DuckDB and Athena, from where each fact stands once.

The columns of files are the jobs' schemas (`ANALYST_TABLES`), a view is its SQL in
`spark_emr/tables.sql`. Made of them: the views of files in that file, and the tables and views of
Glue in the template, whose columns and types DuckDB tells. The columns of the backlog's files
stand in the template alone.

make reports-tables                   writes both files
python -m infra.reports.tables        says whether they are as they would be written
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from textwrap import fill

import duckdb

_ROOT = Path(__file__).resolve().parents[2]
SQL = _ROOT / "spark_emr/tables.sql"
TEMPLATE = _ROOT / "infra/reports/template.yaml"
FILES = {
    "ledger": "ledger_files",
    "usage": "usage_files",
    "documents": "document_files",
    "document_lines": "document_line_files",
    "open_lines": "open_line_files",
    "parties": "party_files",
}
"""Table of the jobs → the name of its files."""
_SQL_PART = re.compile(r"(-- files begin\n).*?(-- files end\n)", re.DOTALL)
_MADE = re.compile(r"(  # Made by .*?: begin\n).*?(  # Made: end\n)", re.DOTALL)
_VIEW = re.compile(r"CREATE OR REPLACE VIEW (\w+) AS\n(.*?);\n", re.DOTALL)
_BACKLOG = re.compile(r"Name: (backlog(?:_label)?_files)\n.*?Columns: \[(.*?)\]", re.DOTALL)
_COLUMN = re.compile(r'\{Name: (\w+), Type: "?([\w(),]+)"?\}')
_WIDTH = 100
_SERDE = "org.apache.hadoop.hive.ql.io.parquet.serde.ParquetHiveSerDe"
_DUCKDB = {"STRING": "VARCHAR", "INT": "INTEGER", "BINARY": "BLOB"}
_HIVE = {"varchar": "string", "integer": "int", "blob": "binary", "timestamp": "timestamp"}
_PRESTO = {"timestamp": "timestamp(3)"}
_TABLE = """\
  {resource}:
    Type: AWS::Glue::Table
    Properties:
      CatalogId: !Ref AWS::AccountId
      DatabaseName: !Ref Database
      TableInput:
        Name: {name}
"""
_FILES = (
    _TABLE
    + """\
        TableType: EXTERNAL_TABLE
        StorageDescriptor:
          Location: !Sub s3://${{ReportsBucket}}/tables/{table}/
          InputFormat: org.apache.hadoop.hive.ql.io.parquet.MapredParquetInputFormat
          OutputFormat: org.apache.hadoop.hive.ql.io.parquet.MapredParquetOutputFormat
          SerdeInfo: {{SerializationLibrary: {serde}}}
{columns}
"""
)
_VIEWS = (
    _TABLE
    + """\
        TableType: VIRTUAL_VIEW
        Parameters: {{presto_view: "true"}}
        ViewExpandedText: /* Presto View */
        # The view of this name in spark_emr/tables.sql, as Athena keeps one.
        ViewOriginalText:
          Fn::Sub:
            - "/* Presto View: ${{View}} */"
            - View:
                Fn::Base64:
                  Fn::Sub: >-
{text}
        StorageDescriptor:
          SerdeInfo: {{}}
{columns}
"""
)


def made() -> dict[Path, str]:
    """The two files as they are to be."""
    schemas = _schemas()
    sql = _SQL_PART.sub(lambda match: match[1] + "\n".join(_sql(schemas)) + match[2], _read(SQL))
    template = _read(TEMPLATE)
    parts = iter(["".join(_file_tables(schemas)), "".join(_views(sql, template, schemas))])
    whole = _MADE.sub(lambda match: match[1] + next(parts) + match[2], template)
    return {SQL: sql, TEMPLATE: whole}


def _schemas() -> Mapping[str, Mapping[str, str]]:
    """Table → its columns, with Spark's types."""
    sys.path.insert(0, str(_ROOT / "spark_emr"))
    from cirrusmq_reports.billing_tables import ANALYST_TABLES
    from cirrusmq_reports.columns import columns_of

    return {table: columns_of(ANALYST_TABLES[table]) for table in FILES}


def _sql(schemas: Mapping[str, Mapping[str, str]]) -> Iterator[str]:
    for table, columns in schemas.items():
        listed = fill(
            f"SELECT {', '.join(columns)}", _WIDTH, subsequent_indent="    ", break_on_hyphens=False
        )
        yield (
            f"CREATE OR REPLACE VIEW {FILES[table]} AS\n{listed}\nFROM read_parquet(\n"
            f"    'tables/{table}/*/*/*.parquet', hive_partitioning = false, union_by_name = true\n"
            ");\n"
        )


def _file_tables(schemas: Mapping[str, Mapping[str, str]]) -> Iterator[str]:
    for table, columns in schemas.items():
        types = {name: type_.lower() for name, type_ in columns.items()}
        yield _FILES.format(
            resource=_resource(FILES[table]),
            name=FILES[table],
            table=table,
            serde=_SERDE,
            columns=_columns(types),
        )


def _views(sql: str, template: str, schemas: Mapping[str, Mapping[str, str]]) -> Iterator[str]:
    files: dict[str, Mapping[str, str]] = {
        **{name: dict(_COLUMN.findall(columns)) for name, columns in _BACKLOG.findall(template)},
        "current_parts": dict.fromkeys(("report", "run", "dataset", "part"), "STRING")
        | dict.fromkeys(("row_count", "sequence"), "BIGINT"),
        **{FILES[table]: columns for table, columns in schemas.items()},
    }
    database = duckdb.connect()
    for name, columns in files.items():
        listed = ", ".join(f'"{column}" {_duckdb(type_)}' for column, type_ in columns.items())
        database.execute(f"CREATE TABLE {name} ({listed})")
    for name, text in _VIEW.findall(sql):
        if name in files:
            continue
        database.execute(f"CREATE VIEW {name} AS {text}")
        described = database.execute(f"DESCRIBE {name}").fetchall()
        types = {row[0].lower(): row[1].lower() for row in described}
        # Athena's names are in small letters.
        listed_columns = [
            f'{{"name":"{column}", "type":"{_PRESTO.get(type_, type_)}"}}'
            for column, type_ in types.items()
        ]
        view = (
            '{"catalog":"awsdatacatalog","schema":"${Database}","originalSql":'
            f'{json.dumps(" ".join(text.split()))},"columns":[{", ".join(listed_columns)}]}}'
        )
        yield _VIEWS.format(
            resource=_resource(name),
            name=name,
            text=_filled(view, 20, 95),
            columns=_columns({each: _HIVE.get(type_, type_) for each, type_ in types.items()}),
        )


def _columns(types: Mapping[str, str]) -> str:
    entries = [
        f"{{Name: {name}, Type: {_quoted(type_)}}}".replace(" ", "\0")
        for name, type_ in types.items()
    ]
    text = _filled(f"{', '.join(entries)}]", 12, _WIDTH)
    return f"          Columns: [\n{text}".replace("\0", " ")


def _filled(text: str, indent: int, width: int) -> str:
    spaces = " " * indent
    return fill(
        text,
        width,
        initial_indent=spaces,
        subsequent_indent=spaces,
        break_long_words=False,
        break_on_hyphens=False,
    )


def _quoted(type_: str) -> str:
    return f'"{type_}"' if "(" in type_ else type_


def _duckdb(type_: str) -> str:
    return _DUCKDB.get(type_.upper(), type_.upper())


def _resource(name: str) -> str:
    return "".join(word.capitalize() for word in name.split("_"))


def _read(path: Path) -> str:
    return path.read_text()


def main() -> int:
    """Write the files, or say that they are not as they would be; the exit code."""
    wrong = [path for path, text in made().items() if _read(path) != text]
    if "--write" in sys.argv[1:]:
        for path, text in made().items():
            path.write_text(text)
        return 0
    for path in wrong:
        print(f"{path.relative_to(_ROOT)}: run make reports-tables", file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
