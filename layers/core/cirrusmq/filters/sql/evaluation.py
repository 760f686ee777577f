"""Evaluation of an SQL filter: values, comparison, three-valued logic, and the stack machine.

A filter is a row of instructions. Each works on a stack of values and returns how many of the
instructions after it to skip, which is how AND and OR stop early. Nothing here calls itself, so a
filter's nesting never reaches Python's stack.

Values: `str` (text), `int` (integer literal), `Decimal` (decimal literal), `bool`, None (NULL).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal, InvalidOperation
from operator import ge, gt, le, lt

from cirrusmq.filters.tags import TAG_SEPARATOR

Value = str | int | Decimal | None
Truth = bool | None
Stack = list[Value]
Attributes = Mapping[str, str | bytes]
Instruction = Callable[[Stack, Attributes], int]
Ordering = Callable[[int | Decimal, int | Decimal], bool]

ORDERINGS: Mapping[str, Ordering] = {">": gt, ">=": ge, "<": lt, "<=": le}

# A longer text is not read as a number, which takes time by the square of its digits.
NUMBER_CHARACTERS = 1_024
_INTEGER = re.compile(r"[+-]?[0-9]++")
_DECIMAL = re.compile(r"[+-]?(?:[0-9]++(?:\.[0-9]*+)?|\.[0-9]++)(?:[eE][+-]?[0-9]++)?")


class Tags(str):
    """A message's tags: as text joined by `||`; `=` and IN are true for each of them too."""

    each: tuple[str, ...]

    @classmethod
    def of(cls, tags: Sequence[str]) -> Tags:
        """The tags of a message that has some."""
        joined = cls(TAG_SEPARATOR.join(tags))
        joined.each = tuple(tags)
        return joined


class EvaluationError(Exception):
    """The message's attributes give the filter no value: the message is not delivered."""


def run(program: Sequence[Instruction], attributes: Attributes) -> Truth:
    """The value of a program that leaves one condition. Raises `EvaluationError`."""
    stack: Stack = []
    at = 0
    while at < len(program):
        at += 1 + program[at](stack, attributes)
    return truth(stack.pop())


# ---- values -------------------------------------------------------------------------------------


def truth(value: Value) -> Truth:
    """`value` as a condition: a value that is neither a boolean nor NULL counts as FALSE."""
    if value is None or isinstance(value, bool):
        return value
    return False


def negative(value: Value) -> Value:
    """`-value`: NULL for everything that is not a number."""
    if isinstance(value, bool) or not isinstance(value, int | Decimal):
        return None
    # The unary minus of Decimal would round to the context's precision.
    return value.copy_negate() if isinstance(value, Decimal) else -value


def equal(left: Value, right: Value) -> Truth:
    """`left = right`; text is read as the other side's type. Raises `EvaluationError`."""
    if left is None or right is None:
        return None
    if isinstance(left, Tags):
        return _any_equal(left, right)
    if isinstance(right, Tags):
        return _any_equal(right, left)
    if isinstance(left, str) and isinstance(right, str):
        return left == right
    if isinstance(left, bool) or isinstance(right, bool):
        return _boolean(left) == _boolean(right)
    first, second = _numbers(left, right)
    return first == second


def ordered(ordering: Ordering, left: Value, right: Value) -> Truth:
    """`left > right` and the like, on numbers. Raises `EvaluationError`."""
    if left is None or right is None:
        return None
    return ordering(*_numbers(left, right))


def both(left: Truth, right: Truth) -> Truth:
    """Kleene's AND."""
    if left is False or right is False:
        return False
    return None if left is None or right is None else True


def either(left: Truth, right: Truth) -> Truth:
    """Kleene's OR."""
    if left is True or right is True:
        return True
    return None if left is None or right is None else False


def opposite(value: Truth) -> Truth:
    """Kleene's NOT."""
    return None if value is None else not value


def _any_equal(tags: Tags, other: Value) -> Truth:
    """Returns True if a tag, or the text of all tags, equals `other`. Raises `EvaluationError` if
    none does and a tag cannot be compared."""
    if isinstance(other, str) and str(tags) == other:
        return True
    failure: EvaluationError | None = None
    for tag in tags.each:
        try:
            if equal(tag, other):
                return True
        except EvaluationError as error:
            failure = error
    if failure is not None:
        raise failure
    return False


def _boolean(value: Value) -> Truth:
    """`value` beside a boolean: text says `true` or means FALSE; a number is neither."""
    if isinstance(value, bool):
        return value
    return value.lower() == "true" if isinstance(value, str) else None


def _numbers(left: Value, right: Value) -> tuple[int | Decimal, int | Decimal]:
    return _number(left, beside=right), _number(right, beside=left)


def _number(value: Value, beside: Value) -> int | Decimal:
    """`value` as a number; beside an integer, text must be an integer too."""
    if isinstance(value, int | Decimal):
        return value
    text = str(value)
    form = _INTEGER if isinstance(beside, int) else _DECIMAL
    # The form is checked first: Decimal itself would take blanks, underscores and NaN.
    if len(text) > NUMBER_CHARACTERS or form.fullmatch(text) is None:
        raise EvaluationError
    try:
        return Decimal(text)
    except InvalidOperation as error:  # an exponent beyond eighteen digits
        raise EvaluationError from error


# ---- instructions -------------------------------------------------------------------------------


def push(value: Value) -> Instruction:
    """Puts a literal on the stack."""

    def instruction(stack: Stack, attributes: Attributes) -> int:
        stack.append(value)
        return 0

    return instruction


def load(name: str) -> Instruction:
    """Puts an attribute on the stack: NULL when it is absent or binary, which has no text."""

    def instruction(stack: Stack, attributes: Attributes) -> int:
        value = attributes.get(name)
        stack.append(value if isinstance(value, str) else None)
        return 0

    return instruction


def replace(function: Callable[[Value], Value]) -> Instruction:
    """Puts `function(value)` in the place of the stack's last value."""

    def instruction(stack: Stack, attributes: Attributes) -> int:
        stack.append(function(stack.pop()))
        return 0

    return instruction


def combine(function: Callable[[Value, Value], Value]) -> Instruction:
    """Puts `function(left, right)` in the place of the stack's last two values."""

    def instruction(stack: Stack, attributes: Attributes) -> int:
        right = stack.pop()
        stack.append(function(stack.pop(), right))
        return 0

    return instruction


def skip_when(stop: bool, instructions: int) -> Instruction:
    """Skips instructions when the stack's last value, as a condition, is `stop`: it stays there."""

    def instruction(stack: Stack, attributes: Attributes) -> int:
        stack.append(truth(stack.pop()))
        return instructions if stack[-1] is stop else 0

    return instruction


def compare(ordering: Ordering) -> Instruction:
    """Puts `left > right` or the like in the place of the stack's last two values."""
    return combine(lambda left, right: ordered(ordering, left, right))


def between(stack: Stack, attributes: Attributes) -> int:
    """Puts `value BETWEEN low AND high` in the place of the stack's last three values."""
    high, low, value = stack.pop(), stack.pop(), stack.pop()
    above = ordered(ge, value, low)
    # As with AND: a result that is already FALSE does not look at the upper bound.
    stack.append(False if above is False else both(above, ordered(le, value, high)))
    return 0


def member(options: frozenset[str]) -> Instruction:
    """Puts `value IN (options)` in the place of the stack's last value."""

    def holds(value: Value) -> Truth:
        if isinstance(value, Tags):
            return str(value) in options or not options.isdisjoint(value.each)
        return None if value is None else value in options

    return replace(holds)
