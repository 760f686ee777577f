"""Objects with the messages of large sends: putting, reading and keeping them.

    a send    object ──> parcel, or log record, that names it ──> answer

A crash between the two leaves an object that nobody names, and the bucket ends it.
"""

from __future__ import annotations

import contextlib
import logging
import zlib
from collections.abc import Iterator, Sequence

import msgspec
from botocore.exceptions import ClientError

from cirrusmq.base.errors import Unavailable
from cirrusmq.model.message import Message
from cirrusmq.model.parcel import Parcel
from cirrusmq.runtime.core import Core
from cirrusmq.storage.bodies.object import (
    MARGIN_MS,
    MAX_HEAD_BYTES,
    life_days,
    object_key,
    read_spans,
    surely_lives_until_ms,
    unpack_object,
)

_logger = logging.getLogger(__name__)
_WHOLE_BYTES = 65_536
"""Objects up to this size are read whole: a second call would take longer."""
_FEW = 4
"""If the wanted messages have at most this part of a larger object, they are read by a range."""
_NO_OBJECT = (ValueError, zlib.error, msgspec.MsgspecError)
"""Errors of bytes that are none of our objects."""


class BucketUnavailable(Unavailable):
    """The bucket refuses, or gives no answer in time; the user's error is the store's."""

    def __init__(self) -> None:
        super().__init__(Unavailable.__doc__)

    @property
    def code(self) -> str:
        """As of the store."""
        return Unavailable.__name__


class WantedObject(msgspec.Struct, kw_only=True):
    """Messages of one object, by their numbers in their send."""

    send_id: str
    days: int
    """The object's class of life."""
    positions: set[int] = set()
    """Numbers of the wanted messages in their send."""
    sizes: dict[int, int] = {}
    """Bytes of each message that is known to be in the object."""

    def add(self, parcel: Parcel, indexes: Sequence[int]) -> None:
        """Adds the messages at these places of a parcel."""
        self.positions.update(map(parcel.position, indexes))
        for index, size in enumerate(parcel.sizes):
            self.sizes[parcel.position(index)] = size

    @property
    def few(self) -> bool:
        """True if a range is worth a second call."""
        bytes_in_all = sum(self.sizes.values())
        wanted = sum(self.sizes.get(position, 0) for position in self.positions)
        return bytes_in_all > _WHOLE_BYTES and wanted * _FEW <= bytes_in_all


@contextlib.contextmanager
def _calling(key: str) -> Iterator[None]:
    """Raises BucketUnavailable if the bucket fails in the block.

    Only the operator can end a lasting refusal, such as a disabled key of encryption; messages wait
    for that, and none is lost in the meantime.
    """
    try:
        yield
    except ClientError as error:
        _logger.error("the bucket refuses the object %s: %r", key, error)
        raise BucketUnavailable from error
    except Unavailable as error:
        raise BucketUnavailable from error


def put_object(core: Core, send_id: str, days: int, data: bytes) -> None:
    """Writes the object of a send."""
    key = object_key(send_id, days)
    with _calling(key):
        core.bodies.put(key, data)


def read_objects(
    core: Core, wanted: Sequence[WantedObject]
) -> list[dict[int, Message] | BucketUnavailable]:
    """Returns each object's messages, by their numbers, or the error if the bucket refuses it.

    Missing messages are absent. One GET for each object; two if few of many bytes are wanted.
    """
    return list(core.in_parallel(lambda each: _read(core, each), wanted))


def _read(core: Core, wanted: WantedObject) -> dict[int, Message] | BucketUnavailable:
    key = object_key(wanted.send_id, wanted.days)
    try:
        with _calling(key):
            found = _get(core, key, wanted)
    except BucketUnavailable as error:
        return error
    except _NO_OBJECT:
        found = None
    if found is None:
        _tell_missing(key)
        return {}
    return found


def _get(core: Core, key: str, wanted: WantedObject) -> dict[int, Message] | None:
    few, begins = wanted.few, 0
    part = core.bodies.get(key, 0, MAX_HEAD_BYTES) if few else core.bodies.get(key)
    if part is None:
        return None
    spans = read_spans(part)
    known = [each for each in wanted.positions if each < len(spans)]
    if few and known:
        begins = spans[min(known)][0]
        part = core.bodies.get(key, begins, spans[max(known)][1])
    return None if part is None else unpack_object(spans, part, begins, known)


def keep_object(core: Core, send_id: str, days: int, until_ms: int, now_ms: int) -> int | None:
    """Keeps an object until messages expire that live longer than its first ones.

        sent      object d05 ............ dead letter ...... ends here
        the dead letter lives longer:     copy to d05 again ................ ends here

    Returns the class under which it can be read: the same one if it surely lives as long. Returns
    None if there is no such object.
    """
    if until_ms + MARGIN_MS <= surely_lives_until_ms(send_id, days):
        return days
    longer = life_days(until_ms - now_ms)
    there = _copy(core, object_key(send_id, days), object_key(send_id, longer))
    return longer if there else None


def copy_object(core: Core, send_id: str, days: int, new_send_id: str, new_days: int) -> None:
    """Copies an object for another send, with a separate life.

    Raises BucketUnavailable, also if the object is missing: its messages are not announced then.
    """
    if not _copy(core, object_key(send_id, days), object_key(new_send_id, new_days)):
        raise BucketUnavailable


def _copy(core: Core, key: str, new_key: str) -> bool:
    """Copies an object. Returns False if it is missing, which the log then says."""
    with _calling(new_key):
        if core.bodies.copy(key, new_key):
            return True
    _tell_missing(key)
    return False


def _tell_missing(key: str) -> None:
    _logger.error("the object %s with messages is missing or is none: they stay, unread", key)
