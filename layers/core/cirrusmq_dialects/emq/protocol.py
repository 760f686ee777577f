"""Thrift's binary protocol: reading a call, whatever bytes it has, and writing its answer.

Apache's reader believes the sizes that it reads. An element has at least a byte, but for types that
no element has; so a container that says more than the rest of the body holds is refused before
an element of it is made, and all containers of a body together have fewer elements than it bytes.
"""

from __future__ import annotations

import contextlib
import struct as packing
from collections.abc import Iterator
from typing import Any, NamedTuple

from thrift.protocol.TBinaryProtocol import TBinaryProtocol
from thrift.protocol.TProtocol import TProtocolException
from thrift.Thrift import TApplicationException, TException, TMessageType, TType
from thrift.transport.TTransport import TMemoryBuffer

from cirrusmq_dialects.emq.contract import Struct, of, struct

_DEPTH = 16
"""The deepest argument has four levels; unknown fields are skipped up to this depth."""
_ELEMENTS = 4_096
"""The most elements of all containers whose elements are kept; the largest call has 900."""
_UNKNOWN_FIELD = 32_767
_NAME_CHARACTERS = 80


class MalformedError(TApplicationException):  # type: ignore[misc]
    """The bytes are no call of a method that there is."""

    def __init__(self, text: str, kind: int = TApplicationException.PROTOCOL_ERROR) -> None:
        """`kind`: Thrift's number of the error."""
        super().__init__(kind, text)


class Head(NamedTuple):
    """The beginning of a message."""

    method: str = ""
    sequence: int = 0


class Reader(TBinaryProtocol):  # type: ignore[misc]
    """Reads a call: its head first, its argument when its caller is known.

    It reads and makes at most what the body has.
    """

    DEFAULT_RECURSION_DEPTH = _DEPTH

    def __init__(self, body: bytes) -> None:
        super().__init__(TMemoryBuffer(body), strictRead=True, string_length_limit=len(body))
        self._size = len(body)
        self._elements: tuple[int, ...] | None = None
        """Types that the container to be read must have; None if it is skipped."""
        self._kept = 0

    def head(self) -> Head:
        """Returns the method and the sequence number. Raises MalformedError."""
        with _reading():
            method, kind, sequence = self.readMessageBegin()
        if kind != TMessageType.CALL or not 0 < len(method) <= _NAME_CHARACTERS:
            raise MalformedError("a message of type CALL with a method's name is needed")
        return Head(method, sequence)

    def argument(self, shape: str) -> Any:
        """Returns the call's one argument, of a struct by its name. Raises MalformedError."""
        given = struct("Arguments", f"1: {shape} request")()
        with _reading():
            given.read(self)
        if self._left:
            raise MalformedError("there are bytes behind the message")
        return given.request or getattr(of, shape)()

    @property
    def _left(self) -> int:
        """Bytes that are not yet read."""
        return self._size - int(self.trans._buffer.tell())

    def readFieldBegin(self) -> Any:  # noqa: N802
        name, kind, number = super().readFieldBegin()
        # A negative number would be one from the end of the table.
        return name, kind, number if number >= 0 else _UNKNOWN_FIELD

    def readContainerList(self, spec: Any) -> Any:  # noqa: N802
        self._elements = (spec[0],)
        return super().readContainerList(spec)

    def readContainerMap(self, spec: Any) -> Any:  # noqa: N802
        self._elements = (spec[0], spec[2])
        return super().readContainerMap(spec)

    def readListBegin(self) -> Any:  # noqa: N802
        return self._checked(super().readListBegin())

    def readSetBegin(self) -> Any:  # noqa: N802
        return self._checked(super().readSetBegin())

    def readMapBegin(self) -> Any:  # noqa: N802
        return self._checked(super().readMapBegin())

    def skip(self, ttype: int, max_depth: int = _DEPTH) -> None:
        if ttype == TType.STRING:
            self.readBinary()  # which need not be UTF-8
        else:
            super().skip(ttype, max_depth)

    def _checked(self, begun: tuple[int, ...]) -> tuple[int, ...]:
        *kinds, size = begun
        wanted, self._elements = self._elements, None
        if size * len(kinds) > self._left:
            raise TProtocolException(TProtocolException.SIZE_LIMIT, "a container is too large")
        if wanted is None:
            return begun
        self._kept += size
        if self._kept > _ELEMENTS:
            raise TProtocolException(TProtocolException.SIZE_LIMIT, "too many elements")
        if size and tuple(kinds) != wanted:
            raise TProtocolException(TProtocolException.INVALID_DATA, "a container of other types")
        return begun


class _Writer(TBinaryProtocol):  # type: ignore[misc]
    """Writes structs, and dicts of the fields of structs."""

    def writeContainerStruct(self, val: Any, spec: Any) -> None:  # noqa: N802
        made, fields = spec
        given = made(**val) if isinstance(val, dict) else val
        super().writeContainerStruct(given, fields)


def reply(head: Head, result: Struct) -> bytes:
    """The message with a method's result."""
    return _write(head, TMessageType.REPLY, result)


def exception(head: Head, error: MalformedError) -> bytes:
    """The message with an error that no method declares."""
    return _write(head, TMessageType.EXCEPTION, error)


@contextlib.contextmanager
def _reading() -> Iterator[None]:
    """Raises MalformedError for bytes that cannot be read."""
    try:
        yield
    except (TException, EOFError, UnicodeDecodeError, packing.error) as error:
        raise MalformedError(str(error)) from error


def _write(head: Head, kind: int, value: Struct | MalformedError) -> bytes:
    buffer = TMemoryBuffer()
    protocol = _Writer(buffer, strictWrite=True)
    protocol.writeMessageBegin(head.method, kind, head.sequence)
    value.write(protocol)
    return bytes(buffer.getvalue())
