"""From JSON and MessagePack to typed values, safe if several threads decode a new type first.

msgspec gathers a struct's fields when the struct is decoded for the first time, and other threads
find them unfinished (seen with 0.22.0, which takes a lock on interpreters without a GIL only).
With a nested struct that ends the whole process:

    A |-- decodes Send: its fields, still NULL --- looks up Message -----|
    B                      |-- decodes Send by the fields that A left: segmentation fault

So a decoder is made by one thread at a time, and no thread gets one before it is finished.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, Protocol, TypeAlias, TypeVar

import msgspec

T = TypeVar("T")


class _Decoder(Protocol):
    def decode(self, content: Any, /) -> Any: ...


_Make: TypeAlias = Callable[[Any], _Decoder]

_making = threading.Lock()
_made: dict[tuple[_Make, Any], _Decoder] = {}


def decode_json(content: bytes | str, kind: type[T]) -> T:
    """Returns the value in JSON. Raises what msgspec raises."""
    decoded: T = _decoder(msgspec.json.Decoder, kind).decode(content)
    return decoded


def decode_packed(content: bytes, kind: type[T]) -> T:
    """Returns the value in MessagePack. Raises what msgspec raises."""
    decoded: T = _decoder(msgspec.msgpack.Decoder, kind).decode(content)
    return decoded


def convert(value: object, kind: type[T], *, strict: bool = True) -> T:
    """Returns the value in lists, dictionaries and scalars. Raises what msgspec raises.

    Without `strict` numbers and booleans may be texts.
    """
    _decoder(msgspec.json.Decoder, kind)  # one thread gathers the fields
    return msgspec.convert(value, kind, strict=strict)


def _decoder(make: _Make, kind: Any) -> _Decoder:
    found = _made.get((make, kind))
    if found is None:
        # One lock for both formats: they share their knowledge of a struct.
        with _making:
            found = _made[make, kind] = make(kind)
    return found
