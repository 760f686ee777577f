"""DynamoDB's numbers: exact decimals of up to 38 significant digits."""

from __future__ import annotations

import re
from decimal import Context, Decimal, Inexact, InvalidOperation
from functools import lru_cache

from cirrusmq_local.engine.errors import InvalidRequestError

MAX_SIGNIFICANT_DIGITS = 38
MAX_EXPONENT = 125
MIN_EXPONENT = -130

# Wide enough for the sum of the largest and the smallest number; a loss of digits raises.
_EXACT = Context(prec=300, traps=[Inexact, InvalidOperation])
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)


def _normalize(text: str) -> str:
    """Returns the canonical text of a number: no exponent, no extra zeros, no sign on zero.

    >>> _normalize("-01.50E1")
    '-15'

    Raises InvalidRequestError if the text is no number, has too many digits or is out of range.
    """
    if text == "0" or (text.isdecimal() and text.isascii() and text[0] != "0" and len(text) <= 38):
        return text
    return canonical_text(_parse(text))


def canonical_text(number: Decimal) -> str:
    """Returns a decimal's canonical text. Raises InvalidRequestError outside DynamoDB's range."""
    if not number:
        return "0"
    exponent = number.adjusted()
    if exponent > MAX_EXPONENT:
        raise InvalidRequestError(
            "Number overflow. Attempting to store a number with magnitude larger than supported "
            "range"
        )
    if exponent < MIN_EXPONENT:
        raise InvalidRequestError(
            "Number underflow. Attempting to store a number with magnitude smaller than supported "
            "range"
        )
    stripped = number.normalize(_EXACT)
    if len(stripped.as_tuple().digits) > MAX_SIGNIFICANT_DIGITS:
        raise InvalidRequestError("Attempting to store more than 38 significant digits in a Number")
    return format(stripped, "f")


def add_numbers(left: str, right: str) -> str:
    """Returns the exact sum of two canonical numbers, as canonical text."""
    return canonical_text(_EXACT.add(Decimal(left), Decimal(right)))


def subtract_numbers(left: str, right: str) -> str:
    """Returns the exact difference of two canonical numbers, as canonical text."""
    return canonical_text(_EXACT.subtract(Decimal(left), Decimal(right)))


@lru_cache(maxsize=4_096)
def normalize_and_measure(text: str) -> tuple[str, int]:
    """Returns a number's canonical text and its billed bytes. Raises InvalidRequestError.

    Cached: many numbers repeat, as times and sizes are in an item several times.
    """
    number = _normalize(text)
    return number, _size(number)


def _size(text: str) -> int:
    """Returns a canonical number's billed bytes: one for two digits, one more, one for minus.

    Zeros at either end are free.
    """
    digits = text.lstrip("-").replace(".", "").strip("0")
    return (len(digits) + 1) // 2 + 1 + (text[0] == "-")


def sortable_number(text: str) -> bytes:
    """Returns bytes that sort as the numbers do: sign, exponent, digits."""
    number = Decimal(text)
    if not number:
        return b"\x80"
    digits = "".join(map(str, number.normalize(_EXACT).as_tuple().digits)).encode()
    magnitude = (number.adjusted() - MIN_EXPONENT).to_bytes(2, "big") + digits
    if number > 0:
        return b"\x81" + magnitude
    # Complemented bytes reverse the order; the last byte puts -1 behind -1.5.
    return b"\x7f" + bytes(255 - byte for byte in magnitude) + b"\xff"


def _parse(text: str) -> Decimal:
    if not _NUMBER.fullmatch(text):
        raise InvalidRequestError(
            f"The parameter cannot be converted to a numeric value: {text}"
            if text
            else "The parameter cannot be converted to a numeric value"
        )
    # An exponent of thousands of digits would be a cheap way to stop the process.
    exponent = re.split("[eE]", text)
    if len(exponent) == 2 and len(exponent[1]) > 6:
        raise InvalidRequestError(f"The parameter cannot be converted to a numeric value: {text}")
    return Decimal(text)
