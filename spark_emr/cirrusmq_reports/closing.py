"""Closing months: the lines of each document, its number, its files and its rows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from itertools import groupby
from typing import Any
from urllib.parse import quote

from pyspark.sql import Column, DataFrame, SparkSession, Window
from pyspark.sql import functions as sf

from cirrusmq_reports.adjustments import MINIMUM, PREFIX, ROUNDING, TAX
from cirrusmq_reports.columns import columns_of
from cirrusmq_reports.document_files import files_of
from cirrusmq_reports.documents import (
    DOCUMENT_SCHEMA,
    INVOICE,
    LEGACY,
    NOTE,
    Header,
    Series,
    document,
    issue,
    least_charges,
)
from cirrusmq_reports.ordered_rows import rows_in_order
from cirrusmq_reports.publication import Outputs, Part
from cirrusmq_reports.rate_card import RateCard
from cirrusmq_reports.swap import DOCUMENTS, INDEX, index_of
from cirrusmq_reports.times import iso_day, month_ms, next_month
from cirrusmq_reports.transforms.invoice_lines import DOCUMENT_LINE_SCHEMA, LINE_SCHEMA

DOCUMENT_TABLE, LINE_TABLE, CARRIED_TABLE = "documents", "document_lines", "carried_lines"
GROUPED_SCHEMA = f"{LINE_SCHEMA}, group STRING"
"""Lines of months with their group."""
CARRIED_PART = "all"
LEGACY_LINES = (
    "account STRING, month STRING, currency STRING, resource STRING, kind STRING, "
    "correction STRING, count BIGINT, bytes BIGINT, amount DECIMAL(38,6)"
)
_NUMBER_SCHEMA = (
    "account STRING, currency STRING, group STRING, number STRING, month STRING, closed STRING"
)
_ORDER = ("resource", "resource_id", "kind", "used_month", "price_date", "tier", "charge")


@dataclass(frozen=True, slots=True, kw_only=True)
class Closed:
    """The result of closing months."""

    parts: Sequence[Part]
    """New parts of documents and their lines, and all parts of carried lines from now on."""
    headers: Sequence[Header]


@dataclass(frozen=True, slots=True)
class Closing:
    """Issues the documents of months, from grouped lines."""

    spark: SparkSession
    outputs: Outputs
    card: RateCard

    def close(self, lines: DataFrame, months: Sequence[str], made_of: Mapping[str, Any]) -> Closed:
        """Issues the documents of these months. `lines` has GROUPED_SCHEMA."""
        none = sf.lit(0).cast("DECIMAL(38,19)")
        sums = lines.groupBy("account", "currency", "group").agg(
            sf.sum("charge").alias("charge"),
            sf.sum(sf.when(_is_use(), sf.col("charge")).otherwise(none)).alias("used"),
        )
        rows = sums.collect()
        totals = {_group_of(row): row["charge"] for row in rows}
        lacking = self._lacking({_group_of(row): row["used"] for row in rows})
        for group, lack in lacking.items():
            totals[group] += lack
        issued = iso_day(self.outputs.generated_ms)
        headers = issue(totals, months, self._series(), issued, self.card.terms)
        named = [
            replace(
                each,
                issuer=self.card.seller.get("name"),
                buyer=self.card.buyers.get(each.account, {}).get("name"),
                terms=self.card.seller.get("payment_terms"),
            )
            for each in headers
        ]
        return self._write(lines.unionByName(self._filling(lacking)), named, made_of)

    def _lacking(
        self, used: Mapping[tuple[str, str, str], Decimal]
    ) -> Mapping[tuple[str, str, str], Decimal]:
        """Returns account, currency and group → the amount of the minimum charge's line."""
        if not any(prices.minimum for prices in self.card.prices):
            return {}
        months = sorted({group.removeprefix(NOTE) for *_, group in used if group.startswith(NOTE)})
        before = {}
        if months:
            published = self.outputs.published
            since = [part for part in published.all_of(LINE_TABLE) if part.part >= months[0]]
            lines = self.outputs.read(self.spark, since, DOCUMENT_LINE_SCHEMA)
            lines = lines.drop("number", "line")
            carried = self.outputs.read(self.spark, published.all_of(CARRIED_TABLE), LINE_SCHEMA)
            known = lines.unionByName(carried).where(sf.col("used_month").isin(months))
            none = sf.lit(0).cast("DECIMAL(38,19)")
            sums = known.groupBy("account", "currency", "used_month").agg(
                sf.sum(sf.when(_is_use(), sf.col("charge")).otherwise(none)).alias("used"),
                sf.sum(sf.when(sf.col("kind") == MINIMUM, sf.col("charge")).otherwise(none)).alias(
                    "filled"
                ),
            )
            before = {
                (row["account"], row["currency"], row["used_month"]): (row["used"], row["filled"])
                for row in sums.collect()
            }
        return least_charges(used, before, self.card.terms)

    def _filling(self, lacking: Mapping[tuple[str, str, str], Decimal]) -> DataFrame:
        """Returns the lines of minimum charges, in the columns of GROUPED_SCHEMA."""
        rows = [
            {
                **dict.fromkeys(columns_of(GROUPED_SCHEMA)),
                "account": account,
                "month": group.removeprefix(NOTE),
                "used_month": group.removeprefix(NOTE),
                "currency": currency,
                "resource": "",
                "kind": MINIMUM,
                "charge": lack,
                "count": 0,
                "bytes": 0,
                "group": group,
            }
            for (account, currency, group), lack in lacking.items()
        ]
        values = [tuple(row.values()) for row in rows]
        return self.spark.createDataFrame(values, GROUPED_SCHEMA)

    def take_over(self, parts: Sequence[Part], made_of: Mapping[str, Any]) -> Closed:
        """Makes documents of the closed invoices of an earlier release, unchanged."""
        old = self.outputs.read(self.spark, parts, LEGACY_LINES)
        price = "DECIMAL(15,15)"
        lines = old.select(
            "account",
            "month",
            sf.coalesce("correction", "month").alias("used_month"),
            "currency",
            "resource",
            sf.lit(None).cast("string").alias("resource_id"),
            "kind",
            sf.lit(None).cast("int").alias("tier"),
            sf.lit(None).cast("string").alias("price_date"),
            sf.lit(None).cast("bigint").alias("quantity"),
            sf.lit(None).cast(price).alias("unit_price"),
            sf.lit(None).cast("DECIMAL(5,4)").alias("paid"),
            sf.col("amount").cast("DECIMAL(38,19)").alias("charge"),
            "count",
            "bytes",
            sf.lit(None).cast("string").alias("reason"),
            sf.lit(None).cast("string").alias("tags"),
            sf.col("month").alias("group"),
        )
        sums = lines.groupBy("account", "currency", "group").agg(sf.sum("charge").alias("charge"))
        headers = [
            Header(
                number=f"{LEGACY}-{row['account']}-{row['group']}-{row['currency']}",
                ordinal=0,
                account=row["account"],
                type=INVOICE,
                month=row["group"],
                closed=row["group"],
                refers_to=None,
                currency=row["currency"],
                sum=row["charge"],
                rounding=Decimal(0),
                total=row["charge"],
                issued=iso_day(self.outputs.generated_ms),
                groups=(row["group"],),
            )
            for row in sums.orderBy("account", "group", "currency").collect()
        ]
        return self._write(lines, headers, made_of)

    def _series(self) -> Series:
        by_account = self.card.series == "account"
        parts = self.outputs.published.all_of(DOCUMENT_TABLE)
        known = self.outputs.read(self.spark, parts, DOCUMENT_SCHEMA)
        own = sf.col("account") if by_account else sf.lit("")
        ends = known.groupBy(own.alias("own")).agg(sf.max("ordinal").alias("last")).collect()
        named = known.where(sf.col("type") == INVOICE).select(
            "account", "month", "currency", "number"
        )
        return Series(
            prefix=self.card.prefix,
            by_account=by_account,
            last={row["own"]: row["last"] for row in ends},
            invoices={
                (row["account"], row["month"], row["currency"]): row["number"]
                for row in named.collect()
            },
        )

    def _write(
        self, lines: DataFrame, headers: Sequence[Header], made_of: Mapping[str, Any]
    ) -> Closed:
        spark, outputs = self.spark, self.outputs
        places = [
            (each.account, each.currency, group, each.number, each.month, each.closed)
            for each in headers
            for group in each.groups
        ]
        numbers = spark.createDataFrame(places, _NUMBER_SCHEMA).withColumnsRenamed(
            {"month": "of_month"}
        )
        numbered = lines.join(numbers, ["account", "currency", "group"], "left").persist()
        own = numbered.where("number IS NOT NULL").drop("group")
        listed = own.withColumn("month", sf.col("of_month")).drop("of_month").persist()
        rows = spark.createDataFrame([each.row() for each in headers], DOCUMENT_SCHEMA)
        stored = _numbered_lines(listed, rows)
        carried = numbered.where("number IS NULL").drop("number", "closed", "of_month")
        parts = [
            *outputs.write(rows, DOCUMENT_TABLE, "closed"),
            *outputs.write(stored, LINE_TABLE, "closed"),
            *outputs.write(
                carried.withColumn("kept_in", sf.lit(CARRIED_PART)), CARRIED_TABLE, "kept_in"
            ),
        ]
        # The copies are made from these files; the index has each name and digest.
        count = sum(part.row_count for part in parts if part.dataset == LINE_TABLE)
        index = index_of(self._write_files(listed, count, headers, made_of))
        outputs.write_file(INDEX, index.encode())
        return Closed(parts=parts, headers=headers)

    def _write_files(
        self, lines: DataFrame, count: int, headers: Sequence[Header], made_of: Mapping[str, Any]
    ) -> Iterator[tuple[str, bytes]]:
        """Writes the files of all documents, account by account. Yields names and contents."""
        by_number = {each.number: each for each in headers}
        ordered = rows_in_order(lines, count, "number", *_in_order())
        for number, own in groupby(ordered, key=lambda row: str(row["number"])):
            header = by_number[number]
            buyer = {"account": header.account, **self.card.buyers.get(header.account, {})}
            made = document(
                header, own, self.card.seller, buyer, {**made_of, "card": self._card(header)}
            )
            for end, content in files_of(made).items():
                name = f"{quote(header.account, safe='')}/{number}.{end}"
                self.outputs.write_file(f"{DOCUMENTS}/{name}", content)
                yield name, content

    def _card(self, header: Header) -> dict[str, Any]:
        """Returns the card's entries that were in force by the period's end."""
        entries = self.card.in_force(month_ms(next_month(header.month)))
        return {"entries": [{**each.as_dict(), "sha256": each.digest} for each in entries]}


def _is_use() -> Column:
    """Returns a condition: the line is of use, not an adjustment or added by the document."""
    return sf.col("tier").isNotNull() & ~sf.col("resource").startswith(PREFIX)


def _group_of(row: Any) -> tuple[str, str, str]:
    return row["account"], row["currency"], row["group"]


def _in_order() -> list[Column]:
    """Returns the order of a document's lines; the line of the minimum charge is last."""
    return [sf.col("kind") == MINIMUM, *map(sf.col, _ORDER)]


def _numbered_lines(listed: DataFrame, headers: DataFrame) -> DataFrame:
    """Returns all lines of documents with their numbers, rounding and tax behind the others."""
    columns = columns_of(DOCUMENT_LINE_SCHEMA)
    both = listed.withColumn("place", sf.lit(0))
    for place, kind in enumerate((ROUNDING, TAX), 1):
        values = {
            **{name: sf.lit(None).cast(type_) for name, type_ in columns.items()},
            **{name: sf.col(name) for name in ("account", "month", "currency", "number")},
            "used_month": sf.col("month"),
            "resource": sf.lit(""),
            "kind": sf.lit(kind),
            "charge": sf.col(kind),
            "count": sf.lit(0).cast("bigint"),
            "bytes": sf.lit(0).cast("bigint"),
        }
        own = headers.where(sf.col(kind) != 0).select(
            *[value.alias(name) for name, value in values.items() if name != "line"],
            "closed",
            sf.lit(place).alias("place"),
        )
        both = both.select(own.columns).unionByName(own)
    in_document = Window.partitionBy("number").orderBy("place", *_in_order())
    return both.withColumn("line", sf.row_number().over(in_document)).select(*columns, "closed")
