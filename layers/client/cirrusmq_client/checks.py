"""Refuses values before they are sent: a wrong type, or a text that is not valid Unicode."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import isfinite
from typing import TypeVar

from cirrusmq_client.errors import InvalidParameter

T = TypeVar("T")


def check_text(name: str, value: object) -> None:
    """Raises InvalidParameter if the value is not a text that UTF-8 can encode."""
    if not isinstance(value, str):
        raise InvalidParameter(f"{name}: must be a text, not {_type(value)}", parameter=name)
    if not value.isascii():
        try:
            value.encode()
        except UnicodeEncodeError as error:
            # Half an emoji: the text was cut between the halves of a character.
            raise InvalidParameter(
                f"{name}: character {error.start + 1} is half of one, which UTF-8 cannot write",
                parameter=name,
            ) from None


def check_value(name: str, value: object) -> None:
    """Raises InvalidParameter if the value is neither a text nor bytes."""
    if isinstance(value, bytes | bytearray | memoryview):
        return
    if not isinstance(value, str):
        raise InvalidParameter(
            f"{name}: must be a text or bytes, not {_type(value)}", parameter=name
        )
    check_text(name, value)


def check_number(name: str, value: object) -> None:
    """Raises InvalidParameter if the value is not a number."""
    if not isinstance(value, int | float) or isinstance(value, bool) or not isfinite(value):
        told = value if isinstance(value, float) else _type(value)
        raise InvalidParameter(f"{name}: must be a number, not {told}", parameter=name)


def check_mapping(name: str, value: object) -> None:
    """Raises InvalidParameter if the value is not a mapping with texts as keys."""
    if not isinstance(value, Mapping):
        raise InvalidParameter(f"{name}: must be a mapping, not {_type(value)}", parameter=name)
    for key in value:
        check_text(f"{name}: a name", key)


def texts(name: str, values: Iterable[str]) -> list[str]:
    """Returns the texts. Raises InvalidParameter for a single text, or for another type in it."""
    listed = several(name, values)
    for value in listed:
        check_text(name, value)
    return listed


def several(name: str, values: Iterable[T]) -> list[T]:
    """Returns the values. Raises InvalidParameter for a single text or bytes."""
    one = isinstance(values, str | bytes | bytearray | memoryview)
    if one or not isinstance(values, Iterable):
        raise InvalidParameter(
            f"{name}: must be a list, not {_type(values)}{': put it in brackets' * one}",
            parameter=name,
        )
    return list(values)


def _type(value: object) -> str:
    return type(value).__name__
