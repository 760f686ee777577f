"""Columns that several transforms share."""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as sf

BAD_RECORD = "BAD_RECORD"
"""Marks an error for which `diagnosis` finds the file and the record."""

SAID = "SAID:"
"""Prefix of an error's sentence that needs no diagnosis."""

_BEFORE_NUMBER, _AFTER_NUMBER = '{"N":"', '"}'


def columns_of(schema: str) -> dict[str, str]:
    """Returns the names of a schema's columns, each with its type."""
    named = (part.partition(" ") for part in schema.split(", "))
    return {name: kind for name, _, kind in named}


def refuse(fault: Column) -> Column:
    """Returns a condition for `where` that keeps every row, and fails the job if `fault` is true.

    Aggregates skip nulls silently, so that a bad record would only make a figure smaller.
    """
    return sf.when(fault, bad_record().cast("boolean")).otherwise(sf.lit(True))


def bad_record() -> Column:
    """Returns an error in the place of a value that a record lacks."""
    return sf.raise_error(sf.lit(BAD_RECORD))


def refuse_saying(sentence: Column) -> Column:
    """Returns an error of known cause: the job is refused with this sentence."""
    return sf.raise_error(sf.concat(sf.lit(SAID), sentence))


def whole(name: str) -> Column:
    """Returns the integer of an attribute `{"N": "12"}`; null if it is missing or no integer."""
    return sf.col(f"{name}.N").try_cast("bigint")


def whole_entry(text: Column) -> Column:
    """Returns the number of a list's entry, from its text `{"N":"12"}`; null as for `whole`.

    Exports have no spaces; with one, or an escape, the text is read as JSON, at ten times the cost.
    A night of 300,000 messages takes 54.5 CPU seconds so, and 59.6 if all are (`night_cpu --without
    entries`; means of two runs each, in turn, whose own spreads were 0.4 and 2.5).
    """
    length = sf.octet_length(text) - sf.lit(len(_BEFORE_NUMBER + _AFTER_NUMBER))
    # As bytes: in a text Spark would search for the beginning of each character.
    number = sf.substring(text.cast("binary"), len(_BEFORE_NUMBER) + 1, length).cast("string")
    plain = sf.when(text.startswith(_BEFORE_NUMBER), number.try_cast("bigint"))
    return sf.coalesce(plain, sf.get_json_object(text, "$.N").try_cast("bigint"))


def count_where(condition: Column) -> Column:
    """Returns the number of a group's rows that meet the condition; null counts as no.

    As a sum: `count_if` makes a null of each other row, which costs more.
    """
    return sf.sum(sf.when(condition, 1).otherwise(0))
