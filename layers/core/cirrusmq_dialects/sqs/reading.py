"""Members of a request: JSON, or the same shape made of a form. Unknown ones are ignored."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import msgspec

from cirrusmq_dialects.sqs.errors import SqsError, invalid, missing

Members: TypeAlias = Mapping[str, Any]
BATCH_ENTRIES = 10
_DIGITS = re.compile(r"-?[0-9]{1,18}", re.ASCII)
_KEY = re.compile(r"[!-~]{1,128}", re.ASCII)
_ENTRY_ID = re.compile(r"[A-Za-z0-9_-]{1,80}", re.ASCII)


def read_json(body: bytes) -> Members:
    """Returns the members in a JSON object. Raises SqsError SerializationException."""
    try:
        members = msgspec.json.decode(body or b"{}")
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise SqsError("SerializationException", "The body is not JSON in UTF-8.") from error
    if not isinstance(members, dict):
        raise SqsError("SerializationException", "The body is not a JSON object.")
    return members


def text(members: Members, name: str) -> str | None:
    """Returns a text, or None if it is not given."""
    value = members.get(name)
    if value is not None and not isinstance(value, str):
        raise SqsError("SerializationException", f"{name} must be a text.")
    return value


def needed_text(members: Members, name: str) -> str:
    """A text that the action needs, of at least one character."""
    value = text(members, name)
    if not value:
        raise missing(name)
    return value


def key_text(members: Members, name: str) -> str | None:
    """Returns a text that identifies messages or receives, or None if it is not given."""
    value = text(members, name)
    if value is not None and not _KEY.fullmatch(value):
        raise SqsError(
            "InvalidParameterValue",
            f"{name} can only include alphanumeric and punctuation characters. 1 to 128 in length",
        )
    return value


def integer(members: Members, name: str, bounds: tuple[int, int]) -> int | None:
    """Returns an integer within bounds, both included, or None if it is not given."""
    value = members.get(name)
    if value is None:
        return None
    if isinstance(value, str) and _DIGITS.fullmatch(value):
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int):
        raise SqsError("SerializationException", f"{name} must be an integer.")
    if not bounds[0] <= value <= bounds[1]:
        raise invalid(name, value, f"Must be between {bounds[0]} and {bounds[1]}, if provided.")
    return value


def texts(members: Members, name: str) -> list[str]:
    """Returns a list of texts, an empty one if it is not given."""
    value = members.get(name)
    if value is None:
        return []
    if not isinstance(value, list) or not all(isinstance(each, str) for each in value):
        raise SqsError("SerializationException", f"{name} must be a list of texts.")
    return value


def pairs(members: Members, name: str) -> dict[str, str]:
    """Returns a map of texts, an empty one if it is not given."""
    value = objects(members, name)
    if not all(isinstance(each, str) for each in value.values()):
        raise SqsError("SerializationException", f"{name} must be a map of texts.")
    return value


def objects(members: Members, name: str) -> dict[str, Any]:
    """Returns a map, an empty one if it is not given."""
    value = members.get(name)
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise SqsError("SerializationException", f"{name} must be a map.")
    return value


def entries(members: Members, kind: str) -> list[Members]:
    """The entries of a batch, with distinct ids; `kind` is their name in the query protocol."""
    listed = members.get("Entries")
    if listed is None:
        listed = []
    if not isinstance(listed, list) or not all(isinstance(each, dict) for each in listed):
        raise SqsError("SerializationException", "Entries must be a list of structures.")
    if not listed:
        raise SqsError("EmptyBatchRequest", f"There should be at least one {kind} in the request.")
    if len(listed) > BATCH_ENTRIES:
        raise SqsError(
            "TooManyEntriesInBatchRequest",
            f"Maximum number of entries per request are {BATCH_ENTRIES}."
            f" You have sent {len(listed)}.",
        )
    _check_ids([_id_of(each) for each in listed])
    return listed


def _id_of(entry: Members) -> str:
    """Returns the id of an entry, which may be an empty one."""
    found = text(entry, "Id")
    if found is None:
        raise missing("Id")
    return found


def _check_ids(ids: Sequence[str]) -> None:
    for each in ids:
        if not _ENTRY_ID.fullmatch(each):
            raise SqsError(
                "InvalidBatchEntryId",
                "A batch entry id can only contain alphanumeric characters, hyphens and"
                " underscores. It can be at most 80 letters long.",
            )
    repeated = next((each for index, each in enumerate(ids) if each in ids[:index]), None)
    if repeated is not None:
        raise SqsError("BatchEntryIdsNotDistinct", f"Id {repeated} repeated.")
