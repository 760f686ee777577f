"""Columns that several transforms share."""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as sf

BAD_RECORD = "BAD_RECORD"
"""In the message of an error that `diagnosis` turns into the name of file and record."""

SAID = "SAID:"
"""Before the sentence of an error that needs no finding out."""


def refuse(fault: Column) -> Column:
    """A condition for `where` that keeps every row, and fails the job where `fault` is true.

    Aggregates skip nulls in silence, so that a bad record would only make a figure smaller.
    """
    return sf.when(fault, bad_record().cast("boolean")).otherwise(sf.lit(True))


def bad_record() -> Column:
    """An error in the place of a value that a record lacks."""
    return sf.raise_error(sf.lit(BAD_RECORD))


def refuse_saying(sentence: Column) -> Column:
    """An error whose cause is known already: the job is refused with this sentence."""
    return sf.raise_error(sf.concat(sf.lit(SAID), sentence))


def whole(name: str) -> Column:
    """The number of an attribute `{"N": "12"}`; null where there is none, or no whole number."""
    return sf.col(f"{name}.N").try_cast("bigint")


def whole_entry(text: Column) -> Column:
    """The number of a list's entry, of its text `{"N":"12"}`; null as for `whole`.

    Exports have no spaces; with one, or an escape, the text is read as JSON, at ten times the cost.
    """
    second_text = sf.substring_index(sf.substring_index(text, '"', 4), '"', -1)
    plain = sf.when(text.startswith('{"N":"'), second_text.try_cast("bigint"))
    return sf.coalesce(plain, sf.get_json_object(text, "$.N").try_cast("bigint"))


def count_where(condition: Column) -> Column:
    """How many rows of a group meet the condition; null counts as no.

    As a sum: `count_if` makes a null of each row that does not, which costs more.
    """
    return sf.sum(sf.when(condition, 1).otherwise(0))
