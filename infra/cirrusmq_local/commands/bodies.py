"""Reads the bodies of a command from its arguments, or else from the lines of standard input."""

from __future__ import annotations

import re
import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import NoReturn, TypeVar

from cirrusmq_client import CirrusMQError, Message
from cirrusmq_client.batches import split
from cirrusmq_local.commands.calls import hint_for
from cirrusmq_local.commands.console import fail, tell
from cirrusmq_local.plurals import counted

T = TypeVar("T")
_BOM = b"\xef\xbb\xbf"
_UTF_16 = (b"\xff\xfe", b"\xfe\xff")
_NAMED = re.compile(r"messages\[(\d+)\]")


class Bodies:
    """Makes messages from bodies, in batches. An error names the line.

    A line ends with LF or CRLF. Empty lines are ignored, because no message is empty. Their number
    is printed at the end.
    """

    def __init__(self, given: list[str] | None, make: Callable[[str], Message]) -> None:
        self._given, self._make = given, make
        self._lines: deque[int] = deque()
        """Line number of each message that is not sent yet."""
        self._sent = self._empty = 0

    def each(self, call: Callable[[list[Message]], Iterable[T]]) -> Iterator[T]:
        """Yield the answer of a call for each batch, in order. Exits with 1 at the first error."""
        for batch in split(self._messages()):
            try:
                answers = call(batch)
            except CirrusMQError as error:
                self._refuse(batch, error)
            for _ in batch:
                self._lines.popleft()
            self._sent += len(batch)
            yield from answers
        if self._empty:
            tell(f"left out: {counted(self._empty, 'empty line')}")

    def _messages(self) -> Iterator[Message]:
        if self._given:
            self._lines.extend(range(1, len(self._given) + 1))
            yield from map(self._make, self._given)
            return
        for number, line in enumerate(sys.stdin.buffer, 1):
            text = self._read(number, line)
            if not text:
                self._empty += 1
                continue
            self._lines.append(number)
            yield self._make(text)

    def _read(self, number: int, line: bytes) -> str:
        if number == 1:
            line = line.removeprefix(_BOM)
            if line.startswith(_UTF_16) or 2 * line.count(0) >= len(line) - 1 > 1:
                self._fail(
                    "standard input is UTF-16, not UTF-8", "convert it: iconv -f UTF-16 -t UTF-8"
                )
        content = line.removesuffix(b"\n").removesuffix(b"\r") if line.endswith(b"\n") else line
        try:
            return content.decode()
        except UnicodeDecodeError as error:
            self._fail(
                f"standard input, line {number}: byte {error.start + 1} is not UTF-8",
                "convert it: iconv -t UTF-8 -f <its encoding>",
            )

    def _refuse(self, batch: list[Message], error: CirrusMQError) -> NoReturn:
        if self._given:
            raise error
        named = _NAMED.match(error.parameter or "")
        first, last = self._lines[0], self._lines[len(batch) - 1]
        if named and int(named[1]) < len(batch):
            first = last = self._lines[int(named[1])]
        where = f"line {first}" if first == last else f"lines {first} to {last}"
        self._fail(f"standard input, {where}: {error.detail}", hint_for(error))

    def _fail(self, text: str, hint: str | None) -> NoReturn:
        fail(f"{text}; sent before it: {counted(self._sent, 'message')}", hint)
