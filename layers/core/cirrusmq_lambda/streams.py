"""Reads events of DynamoDB's change stream: from Lambda's JSON to items in wire shapes."""

from __future__ import annotations

import base64
from typing import Any

from cirrusmq.fanout.parked_items import UNKNOWN_PLACE
from cirrusmq.fanout.reader_parcels import LogEntry
from cirrusmq.metering.fold import StreamRecord
from cirrusmq.runtime.store import Item
from cirrusmq.storage.parcels import LOG


def read_record(record: dict[str, Any]) -> StreamRecord:
    """Returns one record of a stream event."""
    change = record["dynamodb"]
    return StreamRecord(
        event_id=record["eventID"],
        time_ms=int(change["ApproximateCreationDateTime"] * 1000),
        before=_item(change.get("OldImage")),
        after=_item(change.get("NewImage")),
        by_ttl=(record.get("userIdentity") or {}).get("type") == "Service",
    )


def read_entry(record: dict[str, Any]) -> LogEntry:
    """Returns the new log record in a stream event."""
    read = read_record(record)
    assert read.after is not None
    place = record["dynamodb"]["SequenceNumber"].zfill(len(UNKNOWN_PLACE))
    return LogEntry(item=read.after, place=place, came_ms=read.time_ms)


def is_log_record(record: dict[str, Any]) -> bool:
    """Returns True if a stream event is for a log record, not a parcel."""
    return str(record["dynamodb"]["Keys"]["pk"]["S"]).startswith(f"{LOG}#")


def source_id(record: dict[str, Any]) -> str:
    """Returns the id of the source to which a stream event's parcel belongs."""
    return str(record["dynamodb"]["Keys"]["pk"]["S"].split("#")[1])


def _item(image: dict[str, Any] | None) -> Item | None:
    if image is None:
        return None
    return {name: value if "N" in value else _value(value) for name, value in image.items()}


def _value(value: dict[str, Any]) -> dict[str, Any]:
    """Returns the value with binaries as bytes; in JSON they are in base64."""
    ((kind, content),) = value.items()
    match kind:
        case "B":
            return {"B": base64.b64decode(content)}
        case "L":
            # Most records have lists of numbers, so this case is first.
            return {"L": [each if "N" in each else _value(each) for each in content]}
        case "M":
            return {"M": {name: _value(held) for name, held in content.items()}}
    return value
