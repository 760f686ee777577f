"""From JSON to typed values: every field named by its contract, every refusal with its range.

Stored JSON and MessagePack is decoded here, too, safe if several threads decode a new type first:
msgspec gathers a struct's fields when the struct is decoded for the first time, and other threads
find them unfinished (seen with 0.22.0, which takes a lock on interpreters without a GIL only).
With a nested struct that ends the whole process:

    A |-- decodes Send: its fields, still NULL --- looks up Message -----|
    B                      |-- decodes Send by the fields that A left: segmentation fault

So a decoder is made by one thread at a time, and no thread gets one before it is finished.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable
from typing import Any, Protocol, TypeAlias, TypeVar

import msgspec

from cirrusmq.base.errors import (
    BatchTooLarge,
    InvalidParameter,
    MalformedRequest,
    RequestTooLarge,
)
from cirrusmq.base.limits import BATCH_MESSAGES, REQUEST_BYTES, REQUEST_TEXTS

T = TypeVar("T")
# Texts: only refusals need them compiled, which `re` remembers.
_PLACE = r"(?s)^(?P<text>.*?)(?: - at `(?P<key>key` in `)?\$?\.?(?P<path>.*)`)?$"
_MISSING = r"(?:missing required|unknown) field `(?P<name>.*)`"
_STEP = r"[^.\[\]]+|\[(?:\d+|\.\.\.)\]"
_Sixteen = msgspec.defstruct(
    "_Sixteen",
    [(f"message{number}", msgspec.Raw, msgspec.Raw()) for number in range(BATCH_MESSAGES)],
    array_like=True,
    forbid_unknown_fields=True,
)


class _Outline(msgspec.Struct):
    """A request with messages that are not decoded: only their begins and ends are found."""

    messages: _Sixteen | None = None  # type: ignore[valid-type]


def integer(bounds: tuple[int, int], unit: str = "") -> msgspec.Meta:
    """Returns the annotation of a field that takes integers within `bounds`, both included.

    unit: follows the numbers in the words of a refusal: " seconds".
    """
    text = f"an integer from {bounds[0]:,} to {bounds[1]:,}{unit}"
    return msgspec.Meta(ge=bounds[0], le=bounds[1], description=text)


def decode(body: bytes, shape: type[T], max_bytes: int = REQUEST_BYTES) -> T:
    """Reads a request's JSON as `shape`; an empty body is `{}`.

    Raises RequestTooLarge, MalformedRequest (not a JSON object in UTF-8) or InvalidParameter
    (the first value that does not fit, with what would). With more than `REQUEST_BYTES` it may
    have `messages`, of which there are at most 16: else BatchTooLarge.
    """
    if len(body) > max_bytes:
        raise RequestTooLarge(f"The body of the request is over {max_bytes:,} bytes.")
    if len(body) > REQUEST_BYTES:
        _check_count(body)
    try:
        return decode_json(body or b"{}", shape)
    except msgspec.ValidationError as error:
        _check_object(body)
        raise _explain(str(error), shape) from error
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise MalformedRequest from error


def read_values(given: object, shape: type[T], *, strict: bool = True) -> T:
    """Reads values that were not JSON as `shape`, whose ranges hold as in a request.

    Without `strict` numbers and booleans may be texts: `"5"`, `"true"`. Raises InvalidParameter, as
    `decode` does.
    """
    try:
        return convert(given, shape, strict=strict)
    except msgspec.ValidationError as error:
        raise _explain(str(error), shape) from error


def _check_count(body: bytes) -> None:
    """Refuses a large body that would become millions of values, before any of them is made."""
    # An escaped quote counts as none; a text that ends with an escaped backslash as one, not two.
    if body.count(b'"') - body.count(b'\\"') > 2 * REQUEST_TEXTS:
        raise RequestTooLarge(
            f"With more than {REQUEST_BYTES:,} bytes a request has at most {REQUEST_TEXTS:,} texts."
        )
    try:
        decode_json(body, _Outline)
    except msgspec.ValidationError as error:
        if "length" in str(error):
            raise BatchTooLarge(f"a batch has 1 to {BATCH_MESSAGES} messages") from error
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        pass  # reported when it is decoded as its shape


def _check_object(body: bytes) -> None:
    large = len(body) > REQUEST_BYTES
    try:
        decoded = decode_json(body, dict[str, msgspec.Raw]) if large else msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise MalformedRequest from error
    except msgspec.ValidationError:
        return
    if not isinstance(decoded, dict):
        raise MalformedRequest


def _explain(text: str, shape: type) -> InvalidParameter:
    match = re.match(_PLACE, text)
    assert match is not None
    path = match["path"] or ""
    named = re.search(_MISSING, match["text"])
    if named:
        path = f"{path}.{named['name']}" if path else named["name"]
        known = "this field is not known" if "unknown" in match["text"] else "this field is needed"
        return InvalidParameter(path, known)
    reason = match["text"].replace("`", "")
    if match["key"]:
        return InvalidParameter(path, f"must have keys that fit ({reason})")
    wanted = _description(shape, path)
    return InvalidParameter(path, f"must be {wanted} ({reason})" if wanted else reason)


def _description(shape: type, path: str) -> str | None:
    """Returns the values that the field at `path` may hold, from its annotation, or None."""
    import msgspec.inspect as inspect  # costly, and only refusals need it

    found: str | None = None
    current: Any = inspect.type_info(shape)
    for step in re.findall(_STEP, path):
        current, found = _enter(current, step, inspect)
        if current is None:
            return found
    return found


def _enter(current: Any, step: str, inspect: Any) -> tuple[Any, str | None]:
    candidates = current.types if isinstance(current, inspect.UnionType) else (current,)
    for candidate in candidates:
        inner: Any = None
        if isinstance(candidate, inspect.Metadata):
            return _enter(candidate.type, step, inspect)
        if isinstance(candidate, inspect.StructType):
            inner = next((f.type for f in candidate.fields if f.encode_name == step), None)
        elif isinstance(candidate, inspect.ListType) and step.startswith("["):
            inner = candidate.item_type
        elif isinstance(candidate, inspect.DictType):
            inner = candidate.value_type
        if inner is not None:
            return inner, _text(inner, inspect)
    return None, None


def _text(inner: Any, inspect: Any) -> str | None:
    options = inner.types if isinstance(inner, inspect.UnionType) else (inner,)
    for option in options:
        if isinstance(option, inspect.Metadata) and option.extra_json_schema:
            return str(option.extra_json_schema.get("description"))
    return None


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
