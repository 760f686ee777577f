"""The words of an SQL filter: names, keywords, literals and signs, each with its position.

Blanks and comments (`-- …` to the end of the line, `/* … */`) part tokens and mean nothing else.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from decimal import Decimal
from typing import NoReturn

from cirrusmq.base.errors import InvalidFilter

SQL_BYTES = 16 * 1024
SQL_TOKENS = 1_000

# The magnitude 2**63 is read, because -2**63 is a number of 64 bits: the parser, which sees the
# sign, refuses it without one.
INTEGER_MAGNITUDE = 2**63
_INTEGER_DIGITS = len(str(INTEGER_MAGNITUDE))

KEYWORDS = frozenset({"AND", "BETWEEN", "FALSE", "IN", "IS", "NOT", "NULL", "OR", "TRUE"})
NAME = "name"
NUMBER = "number"
TEXT = "text"
END = "end"

# Every repetition is possessive or bounded by a character that it cannot eat, so that the time to
# read a filter grows with its length alone.
_TOKEN = re.compile(
    r"""
    (?P<blank>   [ \t\n\r\f]++ | --[^\n\r]*+ | /\*.*?\*/ )
  | (?P<decimal> (?: [0-9]++\.[0-9]*+ | \.[0-9]++ ) (?: [eE][+-]?[0-9]++ )?
               | [0-9]++[eE][+-]?[0-9]++ )
  | (?P<integer> [0-9]++[lL]? )
  | (?P<text>    '[^']*+(?:''[^']*+)*+' )
  | (?P<name>    [A-Za-z_$][A-Za-z0-9_$]*+ )
  | (?P<sign>    <> | <= | >= | [-+=<>(),] )
    """,
    re.VERBOSE | re.DOTALL,
)


@dataclass(frozen=True, slots=True)
class Token:
    """A token of a filter.

    `kind`: a keyword in upper case, a sign itself, or one of NAME, NUMBER, TEXT, END; `text`: as it
    was written; `value`: of a literal; `position`: its first character in the filter, from 1.
    """

    kind: str
    text: str
    position: int
    value: str | int | Decimal | None = None


def refuse(position: int, reason: str) -> NoReturn:
    """Refuses the filter because of the text at `position`."""
    raise InvalidFilter(f"sql: position {position}: {reason}")


def tokenize(sql: str) -> list[Token]:
    """The tokens of `sql`, the last of kind END. Raises `InvalidFilter`."""
    _check_size(sql)
    tokens: list[Token] = []
    at = 0
    while at < len(sql):
        match = _TOKEN.match(sql, at)
        if match is None:
            _refuse_character(sql, at)
        if match.lastgroup != "blank":
            if len(tokens) == SQL_TOKENS:
                refuse(at + 1, f"the expression has more than {SQL_TOKENS:,} tokens")
            tokens.append(_token(str(match.lastgroup), match.group(), at + 1))
        at = match.end()
    tokens.append(Token(END, "the end", len(sql) + 1))
    return tokens


def _check_size(sql: str) -> None:
    try:
        size = len(sql.encode())
    except UnicodeEncodeError as error:
        refuse(error.start + 1, "half of a surrogate pair is not a character")
    if size > SQL_BYTES:
        raise InvalidFilter(f"sql: must have at most {SQL_BYTES:,} bytes, not {size:,}")


def _token(group: str, text: str, position: int) -> Token:
    if group == "sign":
        return Token(text, text, position)
    if group == "name":
        keyword = text.upper()
        return Token(keyword if keyword in KEYWORDS else NAME, text, position)
    if group == "text":
        return Token(TEXT, text, position, text[1:-1].replace("''", "'"))
    if group == "integer":
        return Token(NUMBER, text, position, _integer(text, position))
    return Token(NUMBER, text, position, _decimal(text, position))


def _integer(text: str, position: int) -> int:
    digits = text.rstrip("lL")
    if digits != "0" and digits.startswith("0"):
        refuse(position, "an integer has no leading zero")
    # The length is looked at first: reading a thousand digits as a number is slow.
    if len(digits) > _INTEGER_DIGITS or int(digits) > INTEGER_MAGNITUDE:
        refuse(position, "an integer has at most 64 bits")
    return int(digits)


def _decimal(text: str, position: int) -> Decimal:
    """Exactly the number written, which is in the range of a 64-bit floating-point number.

    The range keeps exponents such as 1E999999999 out of later comparisons.
    """
    nearest = float(text)
    if nearest == 0.0:
        if text.lower().partition("e")[0].strip("0."):
            refuse(position, "the number is too close to zero")
        return Decimal(0)
    if nearest == float("inf"):
        refuse(position, "the number is too large")
    return Decimal(text)


def _refuse_character(sql: str, at: int) -> NoReturn:
    if sql[at] == "'":
        refuse(at + 1, "the text is not closed")
    if sql.startswith("/*", at):
        refuse(at + 1, "the comment is not closed")
    refuse(at + 1, f"{sql[at]!a} is not part of the language")
