"""From the text of an SQL filter to its program, by recursive descent.

    or    := and (OR and)*
    and   := eq (AND eq)*
    eq    := cmp ( ("=" | "<>") cmp | IS [NOT] NULL )*
    cmp   := unary ( (">" | ">=" | "<" | "<=") unary | [NOT] BETWEEN unary AND unary
                   | [NOT] IN ('s', ...) )*
    unary := ("+" | "-" | NOT) unary | literal | name | "(" or ")"

The parser also knows the kind of operand at each side of an operator, and refuses what could
never compare. Its own nesting is bounded by the levels of the filter.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from enum import Enum
from typing import NoReturn

import cirrusmq.filters.sql.evaluation as machine
from cirrusmq.filters.sql.tokens import (
    END,
    INTEGER_MAGNITUDE,
    NAME,
    NUMBER,
    TEXT,
    Token,
    refuse,
    tokenize,
)

SQL_LEVELS = 64
SHOWN_CHARACTERS = 20

Program = tuple[machine.Instruction, ...]
Connective = Callable[[machine.Truth, machine.Truth], machine.Truth]

_NOT = machine.replace(lambda value: machine.opposite(machine.truth(value)))
_NEGATIVE = machine.replace(machine.negative)
_IS_NULL = machine.replace(lambda value: value is None)
_EQUAL = machine.combine(machine.equal)
_CONSTANTS = {"TRUE": True, "FALSE": False, "NULL": None}
_PRIMARIES = frozenset({NAME, NUMBER, TEXT, *_CONSTANTS})


class Kind(Enum):
    """The kind of an operand, known before any message is seen."""

    LITERAL = "a literal"
    ATTRIBUTE = "an attribute"
    CONDITION = "a condition"
    NEGATIVE = "a negative"


@dataclass(frozen=True, slots=True)
class Operand:
    """A part of the filter: the instructions that leave its value on the stack.

    `position`: its first character, from 1; `value`: of a literal.
    """

    kind: Kind
    program: Program
    position: int
    value: machine.Value = None


def parse(sql: str) -> Program:
    """The program of a filter. Raises `InvalidFilter` with position and reason."""
    parser = _Parser(tokenize(sql))
    operand = parser.disjunction()
    if parser.token.kind != END:
        parser.refuse_token("the end, AND, OR or a comparison")
    return operand.program


class _Parser:
    """The tokens, and how far they are read. Each method reads one rule of the grammar.

    A level costs five calls, so that the deepest filter takes a third of Python's stack.
    """

    def __init__(self, tokens: list[Token]) -> None:
        self._tokens = tokens
        self._at = 0
        self._levels = 0

    @property
    def token(self) -> Token:
        return self._tokens[self._at]

    def disjunction(self) -> Operand:
        left = self._conjunction()
        while self._take("OR"):
            left = _joined(left, self._conjunction(), machine.either, stop=True)
        return left

    def _conjunction(self) -> Operand:
        left = self._equality()
        while self._take("AND"):
            left = _joined(left, self._equality(), machine.both, stop=False)
        return left

    def _equality(self) -> Operand:
        left = self._comparison()
        while True:
            if self._take("="):
                left = _equal(left, self._comparison(), ())
            elif self._take("<>"):
                left = _equal(left, self._comparison(), (_NOT,))
            elif self._take("IS"):
                negation = (_NOT,) if self._take("NOT") else ()
                self._expect("NULL")
                left = _condition(left, (_IS_NULL, *negation))
            else:
                return left

    def _comparison(self) -> Operand:
        left = self._unary()
        while True:
            ordering = machine.ORDERINGS.get(self.token.kind)
            if ordering is not None:
                self._at += 1
                right = self._unary()
                _check_number(left)
                _check_number(right)
                left = _condition(left, (*right.program, machine.compare(ordering)))
                continue
            negation = (_NOT,) if self._take("NOT") else ()
            if self._take("BETWEEN"):
                left = self._between(left, negation)
            elif self._take("IN"):
                left = self._in(left, negation)
            elif negation:
                self.refuse_token("BETWEEN or IN")
            else:
                return left

    def _between(self, left: Operand, negation: Program) -> Operand:
        low = self._unary()
        self._expect("AND")
        high = self._unary()
        for operand in (left, low, high):
            _check_number(operand)
        if low.kind is high.kind is Kind.LITERAL and machine.ordered(
            machine.ORDERINGS[">"], low.value, high.value
        ):
            refuse(low.position, "the lower bound of BETWEEN is above the upper bound")
        return _condition(left, (*low.program, *high.program, machine.between, *negation))

    def _in(self, left: Operand, negation: Program) -> Operand:
        if left.kind is not Kind.ATTRIBUTE:
            refuse(left.position, "the left side of IN must be an attribute")
        self._expect("(")
        options = {self._text()}
        while self._take(","):
            options.add(self._text())
        self._expect(")")
        return _condition(left, (machine.member(frozenset(options)), *negation))

    def _text(self) -> str:
        if self.token.kind != TEXT:
            self.refuse_token("a text in quotes")
        value = str(self.token.value)
        self._at += 1
        return value

    def _unary(self) -> Operand:
        signs: list[Token] = []
        while self.token.kind in ("+", "-", "NOT"):
            signs.append(self.token)
            self._enter()
        if self.token.kind == "(":
            self._enter()
            operand = self.disjunction()
            self._expect(")")
            self._levels -= 1
        else:
            operand = self._primary(negated=bool(signs) and signs[-1].kind == "-")
        self._levels -= len(signs)
        for sign in reversed(signs):
            operand = _signed(sign, operand)
        return operand

    def _primary(self, negated: bool) -> Operand:
        token = self.token
        if token.kind not in _PRIMARIES:
            self.refuse_token("a name, a literal or (")
        self._at += 1
        if token.kind == NAME:
            return Operand(Kind.ATTRIBUTE, (machine.load(token.text),), token.position)
        if token.value == INTEGER_MAGNITUDE and isinstance(token.value, int) and not negated:
            refuse(token.position, "an integer has at most 64 bits")
        return _literal(_CONSTANTS.get(token.kind, token.value), token.position)

    def _enter(self) -> None:
        """Reads a token that begins a level."""
        self._levels += 1
        if self._levels > SQL_LEVELS:
            refuse(self.token.position, f"the expression has more than {SQL_LEVELS} levels")
        self._at += 1

    def _take(self, kind: str) -> bool:
        """Reads the token if it is of this kind."""
        if self.token.kind != kind:
            return False
        self._at += 1
        return True

    def _expect(self, kind: str) -> None:
        if not self._take(kind):
            self.refuse_token(kind)

    def refuse_token(self, expected: str) -> NoReturn:
        refuse(self.token.position, f"expected {expected}, found {_shown(self.token)}")


def _condition(left: Operand, rest: Program) -> Operand:
    return Operand(Kind.CONDITION, left.program + rest, left.position)


def _joined(left: Operand, right: Operand, join: Connective, stop: bool) -> Operand:
    """`left` AND or OR `right`: where `left` is `stop` already, `right` is not looked at."""
    joined = machine.combine(
        lambda first, second: join(machine.truth(first), machine.truth(second))
    )
    skip = machine.skip_when(stop, len(right.program) + 1)
    return _condition(left, (skip, *right.program, joined))


def _equal(left: Operand, right: Operand, negation: Program) -> Operand:
    for operand in (left, right):
        if operand.kind is Kind.LITERAL and operand.value is None:
            refuse(operand.position, "NULL equals nothing: use IS NULL")
    return _condition(left, (*right.program, _EQUAL, *negation))


def _literal(value: machine.Value, position: int) -> Operand:
    return Operand(Kind.LITERAL, (machine.push(value),), position, value)


def _signed(sign: Token, operand: Operand) -> Operand:
    if sign.kind == "+":
        return operand
    if sign.kind == "NOT":
        return Operand(Kind.CONDITION, (*operand.program, _NOT), sign.position)
    if operand.kind is not Kind.LITERAL or machine.negative(operand.value) is None:
        return Operand(Kind.NEGATIVE, (*operand.program, _NEGATIVE), sign.position)
    # The negative of a number is a literal again, so that BETWEEN can compare its bounds.
    value = machine.negative(operand.value)
    if value == INTEGER_MAGNITUDE and isinstance(value, int):
        refuse(sign.position, "an integer has at most 64 bits")
    return _literal(value, sign.position)


def _check_number(operand: Operand) -> None:
    """Refuses operands that can never be numbers beside >, >=, <, <= or BETWEEN."""
    if operand.kind is Kind.CONDITION:
        refuse(operand.position, "a condition cannot be compared as a number")
    if operand.kind is Kind.LITERAL and (
        isinstance(operand.value, bool) or not isinstance(operand.value, int | Decimal)
    ):
        refuse(operand.position, "only numbers and attributes can be compared by size")


def _shown(token: Token) -> str:
    if token.kind == END:
        return token.text
    return ascii(token.text[:SHOWN_CHARACTERS])
