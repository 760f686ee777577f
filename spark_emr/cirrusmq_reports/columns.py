"""Columns that several transforms share."""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as sf

BAD_RECORD = "BAD_RECORD"
"""In the message of an error that `diagnosis` turns into the name of file and record."""

SAID = "SAID:"
"""Before the sentence of an error that needs no finding out."""

_BEFORE_NUMBER, _AFTER_NUMBER = '{"N":"', '"}'


def columns_of(schema: str) -> dict[str, str]:
    """The names of a schema's columns, each with its type."""
    named = (part.partition(" ") for part in schema.split(", "))
    return {name: kind for name, _, kind in named}


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
    A night of 300,000 messages takes 54.5 CPU seconds so, and 59.6 if all are (`night_cpu --without
    entries`; means of two runs each, in turn, whose own spreads were 0.4 and 2.5).
    """
    length = sf.octet_length(text) - sf.lit(len(_BEFORE_NUMBER + _AFTER_NUMBER))
    # Of its bytes: in a text Spark would look for the beginning of each character.
    number = sf.substring(text.cast("binary"), len(_BEFORE_NUMBER) + 1, length).cast("string")
    plain = sf.when(text.startswith(_BEFORE_NUMBER), number.try_cast("bigint"))
    return sf.coalesce(plain, sf.get_json_object(text, "$.N").try_cast("bigint"))


def count_where(condition: Column) -> Column:
    """How many rows of a group meet the condition; null counts as no.

    As a sum: `count_if` makes a null of each row that does not, which costs more.
    """
    return sf.sum(sf.when(condition, 1).otherwise(0))
