"""The attributes that are read from each table's items: narrow schemas, and record faults.

An attribute is a struct with one field, named by its type: `{"S": "text"}`, `{"N": "12"}`,
`{"L": […]}`, `{"M": {…}}`. Numbers stay text here, as they are in the files. Each entry of a list
of numbers is the text `{"N": "12"}`: for a struct Spark's parser makes a dozen objects, and most
numbers are in lists.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from pyspark.sql.types import ArrayType, DataType, StringType, StructField, StructType

from cirrusmq_reports.keys import (
    IS_PARCEL,
    IS_STATE,
    MALFORMED_PARCEL,
    kinds_of_other_tables,
)


def _of_another_table(name: str, also: str = "false") -> dict[str, str]:
    kinds = ", ".join(f"'{kind}'" for kind in kinds_of_other_tables(name))
    condition = f"substring_index(item.pk.S, '#', 1) IN ({kinds}) OR {also}"
    return {f"it is no item of the table {name}": condition}


def _struct(**fields: DataType) -> StructType:
    return StructType([StructField(name, kind) for name, kind in fields.items()])


_TEXT = _struct(S=StringType())
_NUMBER = _struct(N=StringType())
_NUMBERS = _struct(L=ArrayType(StringType()))
_BINARY = _struct(B=StringType())

_USAGE_ENTRY = _struct(
    account=_TEXT,
    resource=_TEXT,
    id=_TEXT,
    kind=_TEXT,
    minute=_NUMBER,
    count=_NUMBER,
    bytes=_NUMBER,
    attempts=_NUMBER,
)


@dataclass(frozen=True, slots=True)
class TableSchema:
    """The schema and the checks of a table's items."""

    name: str
    """Name of the table, without the deployment's prefix."""
    item: StructType
    faults: Mapping[str, str]
    """Sentence → SQL condition on a column `item`: a fault in a value that the reports need."""
    wrong_values: Mapping[str, str] = field(default_factory=dict)
    """Sentence → SQL condition on `item`: of the right type, but refused by the reader."""
    read_of: Mapping[str, str] = field(default_factory=dict)
    """Attribute → SQL condition on `item`: the kinds of items from which it is read.

    Items of other kinds may have an attribute of the same letter, of any type.
    """
    filtered_first: bool = False
    """True if the reports filter items before use, which would drop bad ones."""
    set_aside: bool = False
    """True if the reports move odd items to the quarantine; else they refuse them."""

    @property
    def full_record(self) -> StructType:
        """A line of a full export."""
        return _struct(Item=self.item)

    @property
    def incremental_record(self) -> StructType:
        """A line of an incremental export."""
        return _struct(
            Metadata=_struct(WriteTimestampMicros=_NUMBER),
            Keys=_struct(pk=_TEXT, sk=_TEXT),
            NewImage=self.item,
            OldImage=self.item,
        )

    @property
    def refused(self) -> Mapping[str, str]:
        """The faults that the reader refuses."""
        return {**self.wrong_types, **self.wrong_values}

    @property
    def all_faults(self) -> Mapping[str, str]:
        """All faults that an item can have."""
        return {**self.refused, **self.faults}

    @property
    def wrong_types(self) -> Mapping[str, str]:
        """Sentence → SQL condition on `item`: a key missing, or an attribute of another type."""
        keys = {f"{key} is not a string": f"item.{key}.S IS NULL" for key in ("pk", "sk")}
        others = {
            f"{column.name} is not of type {_type_name(column)}": (
                f"item.{column.name} IS NOT NULL "
                f"AND item.{column.name}.{_type_name(column)} IS NULL "
                f"AND ({self.read_of[column.name]})"
            )
            for column in self.item
            if column.name not in ("pk", "sk") and not self.set_aside
        }
        return keys | others


def _type_name(column: StructField) -> str:
    assert isinstance(column.dataType, StructType)
    return column.dataType.names[0]


def _not_numbers(name: str) -> str:
    return f"exists(item.{name}.L, entry -> {_ENTRY} IS NULL)"


def _too_large(number: str) -> str:
    return f"{number} NOT BETWEEN -{LARGEST} AND {LARGEST}"


def _not_a_number(name: str) -> str:
    return f"try_cast(item.{name}.N AS BIGINT) IS NULL"


_ENTRY = "try_cast(get_json_object(entry, '$.N') AS BIGINT)"
"""SQL: the number in the text `entry` of a list."""
USAGE_LIVES_DAYS = 40
"""From the writing of a usage record to its `expires_at`."""
LARGEST = 10**15
"""As milliseconds, far beyond any message's time; thousands of such numbers can be added."""
_KIND = "substring(item.pk.S, 1, 2)"
_THREE_PARTS = "item.pk.S LIKE '%#%#%'"
"""Two tables may use the same letter, but with a different number of parts."""
_IS_QUEUE = "substring(item.pk.S, 1, 2) = 'A#' AND substring(item.sk.S, 1, 6) = 'queue#'"
_IS_RESOURCE = "substring(item.pk.S, 1, 2) = 'I#'"
IS_ACCOUNT = r"RLIKE '^[A-Za-z][A-Za-z0-9_-]{0,63}\\z'"
"""The grammar of account names. Spark reads a value that is no JSON string as its text."""
DOCUMENT = "account STRING, kind STRING, name STRING"
"""The fields read of a resource's document in Directory."""
QUEUE_DOCUMENT = (
    "id STRING, account STRING, name STRING, purged_ms BIGINT, rewind_floor_ms BIGINT, "
    "attributes STRUCT<rewind_seconds: BIGINT,labels: MAP<STRING,STRING>>"
)
"""The fields read of a queue's document in Directory."""
_DOCUMENT = f"from_json(item.document.S, '{DOCUMENT}', map('allowSingleQuotes', 'false'))"

_READ_OF_PARCELS = dict.fromkeys(("v", "w", "r", "z", "f", "t", "x", "d", "expires_at"), IS_PARCEL)

MESSAGES = TableSchema(
    name="Messages",
    item=_struct(
        pk=_TEXT,
        sk=_TEXT,
        v=_NUMBERS,
        w=_NUMBERS,
        r=_NUMBERS,
        z=_NUMBERS,
        t=_NUMBER,
        x=_NUMBER,
        d=_BINARY,
        expires_at=_NUMBER,
        state=_TEXT,
        probe_sent=_NUMBER,
    ),
    faults={
        **{
            f"{name} is not a list of whole numbers": (
                f"{IS_PARCEL} AND (item.{name} IS NULL OR {_not_numbers(name)})"
            )
            for name in ("v", "r", "z")
        },
        "w is not a list of whole numbers": f"{IS_PARCEL} AND {_not_numbers('w')}",
        "v, r and z differ in length": (
            f"{IS_PARCEL} AND (size(item.v.L) != size(item.r.L) "
            "OR size(item.v.L) != size(item.z.L))"
        ),
        "w and v differ in length": f"{IS_PARCEL} AND size(item.w.L) != size(item.v.L)",
        **{
            f"{name} is not a whole number": f"{IS_PARCEL} AND {_not_a_number(name)}"
            for name in ("t", "x", "expires_at")
        },
        "probe_sent is not a whole number": (
            f"item.state.S = 'retrying' AND {_not_a_number('probe_sent')}"
        ),
        "its key is not that of a parcel": MALFORMED_PARCEL,
        **{
            f"a number of {name} is negative": (
                f"{IS_PARCEL} AND exists(item.{name}.L, entry -> {_ENTRY} < 0)"
            )
            for name in ("r", "z")
        },
        # Looked for only after a sum has overflowed.
        **{
            f"a number of {name} is too large": (
                f"{IS_PARCEL} AND exists(item.{name}.L, entry -> {_too_large(_ENTRY)})"
            )
            for name in ("v", "w", "z")
        },
        **{
            f"{name} is too large": (
                f"{kinds} AND {_too_large(f'try_cast(item.{name}.N AS BIGINT)')}"
            )
            for kinds, names in (
                (IS_PARCEL, ("t", "x", "expires_at")),
                (IS_STATE, ("probe_sent",)),
            )
            for name in names
        },
    },
    wrong_values=_of_another_table("Messages", f"{_KIND} = 'A#' AND NOT {_THREE_PARTS}"),
    read_of=_READ_OF_PARCELS | dict.fromkeys(("state", "probe_sent"), IS_STATE),
)
MESSAGES_WITH_DELETIONS = replace(
    MESSAGES,
    item=StructType([*MESSAGES.item.fields, StructField("f", _NUMBERS)]),
    faults={
        **MESSAGES.faults,
        "f is not a list of whole numbers": f"{IS_PARCEL} AND {_not_numbers('f')}",
        "f and v differ in length": f"{IS_PARCEL} AND size(item.f.L) != size(item.v.L)",
    },
)
"""With the times of deletions: with the Directory's settings they give the rewindable messages."""

USAGE = TableSchema(
    name="Usage",
    item=_struct(
        pk=_TEXT,
        sk=_TEXT,
        records=_struct(L=ArrayType(_struct(M=_USAGE_ENTRY))),
        w=_NUMBER,
        expires_at=_NUMBER,
    ),
    faults={},
    wrong_values=_of_another_table("Usage"),
    # Counters and marks lie beside the records.
    filtered_first=True,
    set_aside=True,
)

DIRECTORY = TableSchema(
    name="Directory",
    item=_struct(pk=_TEXT, sk=_TEXT, document=_TEXT, expires_at=_NUMBER),
    faults={
        "a queue's document has no id and rewind_seconds": (
            f"{_IS_QUEUE} AND exists(array(from_json(item.document.S, '{QUEUE_DOCUMENT}')), "
            "document -> document.id IS NULL OR document.attributes.rewind_seconds IS NULL)"
        ),
        "document is missing": f"{_IS_RESOURCE} AND item.document IS NULL",
        "document is not JSON with account, kind and name": (
            f"{_IS_RESOURCE} AND exists(array({_DOCUMENT}), document -> "
            f"NOT coalesce(document.account {IS_ACCOUNT}, false) "
            "OR document.kind IS NULL OR document.name IS NULL)"
        ),
    },
    wrong_values=_of_another_table("Directory", f"{_KIND} IN ('A#', 'Q#') AND {_THREE_PARTS}"),
    read_of={"document": f"{_IS_RESOURCE} OR {_IS_QUEUE}", "expires_at": _IS_RESOURCE},
    filtered_first=True,
)
