"""The error of a job's input."""

from __future__ import annotations


class BadInput(Exception):
    """One sentence that names the wrong file or option. The job ends with exit code 2.

    It is one line, also if a file's name or a record's key has control characters.
    """

    def __str__(self) -> str:
        return "".join(map(_printable, super().__str__()))


def _printable(letter: str) -> str:
    return letter if letter.isprintable() else letter.encode("unicode_escape").decode()
