"""Random values, conditions and updates of DynamoDB's expressions, drawn from a seed.

`wide` draws all that DynamoDB's documents define and CirrusMQ could meet. Without it, draws leave
out what moto does differently: `MOTO_DIFFERS` lists each, with its place in moto's code.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from random import Random
from typing import Any, TypeVar

Value = dict[str, Any]
"""A value in wire shape, as {"N": "2"}; binary as bytes."""
T = TypeVar("T")

MOTO_DIFFERS = {
    "absent operands": "OpEqual compares None with None: two absent attributes are equal, and an "
    "absent one equals NULL. So paths are compared with values, and values are never NULL.",
    "values without types": "AttributeValue.expr compares Python values: true equals the number 1. "
    "So no number that is compared is 0 or 1.",
    "orderings across types": "OpLessThan and FuncBetween compare whatever they get, and raise "
    "TypeError. So an ordering comes behind a check of the type.",
    "size of what has none": "FuncSize raises ValueError. So size() comes behind a check of the "
    "type.",
    "binary": "It compares and orders the base64 text. So there is no binary.",
    "the last page": "Table.query gives a LastEvaluatedKey only when it has seen a further item, "
    "DynamoDB whenever a limit was reached.",
    "UPDATED_OLD and UPDATED_NEW": "update_item returns attributes that changed, whole; DynamoDB "
    "the paths that were written. So these two are not asked for.",
    "half an update": "UpdateExpressionExecutor changes the stored item action by action, and "
    "leaves it so when a later one fails.",
    "cancelled by what": "transact_write_items raises ValidationException itself for an update "
    "that cannot be done, DynamoDB cancels the transaction with the reason ValidationError.",
    "appending nothing": "UpdateExpressionFunctionEvaluator asserts that the second operand of "
    "list_append is there. So it always is.",
    "appending beyond the end": "SetExecutor appends in the order of the text, DynamoDB in the "
    "order of the indexes. So at most one index lies beyond an end.",
    "copies": "SetExecutor copies no list, map or set, and later actions of the update change "
    "them in place: the copy changes too. So none of those is copied.",
    "two records of an insert": "update_item puts the bare key first, which makes a stream record "
    "besides the update's. So a record that inserts is left out before another.",
}

PATHS = (
    "n",
    "word",
    "tags",
    "list_",
    "map_",
    "mixed",
    "gone",
    "list_[0]",
    "list_[1]",
    "map_.x",
    "#m.#y",
)
_COPIED = ("n", "word", "gone")
"""Paths that a narrow draw copies."""
_TYPES = ("S", "N", "SS", "NS", "L", "M", "BOOL", "NULL")
_WORDS = ("", "a", "ab", "b", "é", "10")
_NUMBERS = ("2", "-7", "3.5", "10", "100", "-0.25")
_BYTES = (b"", b"a", b"ab", b"\xff", b"\x00")
_GUARDED_SIZES = ("S", "L", "M", "SS", "NS")
_COMPARATORS = ("<", "<=", ">", ">=", "BETWEEN")


class Values:
    """Draws values."""

    def __init__(self, random: Random, wide: bool) -> None:
        self.random, self.wide = random, wide

    def one(self, options: Sequence[T]) -> T:
        """Draws one of some options."""
        return self.random.choice(options)

    def often(self, share: float) -> bool:
        """Draws True with a probability."""
        return self.random.random() < share

    def some(self, options: Sequence[T], least: int, limit: int) -> list[T]:
        """Draws distinct options, in any order."""
        return self.random.sample(options, self.random.randint(least, limit))

    def text(self) -> Value:
        """Draws a text."""
        return {"S": self.one(_WORDS)}

    def number(self) -> Value:
        """Draws a number; 0 and 1 only in a wide draw."""
        return {"N": self.one((*_NUMBERS, "0", "1") if self.wide else _NUMBERS)}

    def text_set(self) -> Value:
        """Draws a set of texts."""
        return {"SS": self.some("abc", 1, 3)}

    def number_set(self) -> Value:
        """Draws a set of numbers."""
        return {"NS": self.some(("2", "3.5", "-7"), 1, 3)}

    def plain(self) -> Value:
        """Draws a text, a number or a set of them; binary in a wide draw."""
        kinds: list[Callable[[], Value]] = [self.text, self.number, self.text_set, self.number_set]
        if self.wide:
            kinds += [lambda: {"B": self.one(_BYTES)}, lambda: {"BS": self.some(_BYTES[1:], 1, 3)}]
        return self.one(kinds)()

    def list_(self) -> Value:
        """Draws a list of at most three plain values."""
        return {"L": [self.plain() for _ in range(self.random.randint(0, 3))]}

    def map_(self) -> Value:
        """Draws a map with some of the members x and y."""
        return {"M": {name: self.plain() for name in self.some("xy", 0, 2)}}

    def compared(self) -> Value:
        """Draws a value that a path is compared with."""
        kinds: list[Callable[[], Value]] = [self.plain, self.plain, self.list_, self.map_]
        if self.wide:
            kinds += [lambda: {"NULL": True}, lambda: {"BOOL": self.often(0.5)}]
        return self.one(kinds)()

    def anything(self) -> Value:
        """Draws a value of any type."""
        kinds: list[Callable[[], Value]] = [
            self.compared,
            self.compared,
            lambda: {"BOOL": self.often(0.5)},
            lambda: {"NULL": True},
            lambda: {"N": self.one(("0", "1"))},
            lambda: {"L": [self.map_()]},
        ]
        return self.one(kinds)()

    def attributes(self, share: float) -> dict[str, Value]:
        """Draws an item's attributes, each with a probability."""
        makers = {
            "n": self.number,
            "word": self.text,
            "tags": self.text_set,
            "list_": self.list_,
            "map_": self.map_,
            "mixed": self.anything,
        }
        return {name: make() for name, make in makers.items() if self.often(share)}


class Expression:
    """One text with its placeholders.

    prefix: begins the names of its values, so that two expressions of a request do not share one.
    """

    def __init__(self, values: Values, prefix: str) -> None:
        self.values: dict[str, Value] = {}
        self._draw, self._prefix = values, prefix

    def value(self, value: Mapping[str, Any]) -> str:
        """Adds a value, and returns its placeholder."""
        name = f":{self._prefix}{len(self.values)}"
        self.values[name] = dict(value)
        return name

    def condition(self, depth: int = 2) -> str:
        """Draws a condition."""
        draw = self._draw
        joined = draw.one(("", "", "NOT", "AND", "OR")) if depth else ""
        if joined == "NOT":
            return f"NOT ({self.condition(depth - 1)})"
        if joined:
            return f"{self.condition(depth - 1)} {joined} {self.condition(depth - 1)}"
        path = draw.one(PATHS)
        kinds: list[Callable[[], str]] = [
            lambda: f"{draw.one(('attribute_exists', 'attribute_not_exists'))}({path})",
            lambda: f"attribute_type({path}, {self.value({'S': draw.one(_TYPES)})})",
            lambda: f"begins_with({path}, {self.value(draw.text())})",
            lambda: f"contains({path}, {self.value(draw.plain())})",
            lambda: f"{path} IN ({', '.join(self._operands(draw.compared, 3))})",
            lambda: self._size(path),
            lambda: f"{path} {draw.one(('=', '<>'))} {self._operand()}",
            lambda: self._ordering(path),
        ]
        return draw.one(kinds)()

    def update(self) -> str:
        """Draws an update: some attributes, each changed in one way."""
        ways = self._ways()
        clauses: dict[str, list[str]] = {}
        for attribute in self._draw.some(sorted(ways), 1, 3):
            clause, text = self._draw.one(ways[attribute])()
            clauses.setdefault(clause, []).append(text)
        return " ".join(f"{clause} {', '.join(texts)}" for clause, texts in clauses.items())

    def _operands(self, make: Callable[[], Value], limit: int) -> list[str]:
        return [self.value(make()) for _ in range(self._draw.random.randint(1, limit))]

    def _operand(self) -> str:
        if self._draw.wide and self._draw.often(0.3):
            return self._draw.one(PATHS)
        return self.value(self._draw.compared())

    def _guarded(self, path: str, tag: str, text: str) -> str:
        if self._draw.wide and self._draw.often(0.5):
            return f"({text})"
        return f"(attribute_type({path}, {self.value({'S': tag})}) AND {text})"

    def _size(self, path: str) -> str:
        draw = self._draw
        number = self.value({"N": draw.one(("2", "3"))})
        text = f"size({path}) {draw.one(('=', '<', '>='))} {number}"
        return self._guarded(path, draw.one(_GUARDED_SIZES), text)

    def _ordering(self, path: str) -> str:
        draw = self._draw
        make = draw.one((draw.text, draw.number))
        low, high = sorted((make(), make()), key=_order)
        comparator = draw.one(_COMPARATORS)
        tag = next(iter(low))
        if comparator == "BETWEEN":
            text = f"{path} BETWEEN {self.value(low)} AND {self.value(high)}"
        else:
            text = f"{path} {comparator} {self.value(low)}"
        return self._guarded(path, tag, text)

    def _ways(self) -> dict[str, list[Callable[[], tuple[str, str]]]]:
        draw = self._draw

        def v(make: Callable[[], Value]) -> str:
            return self.value(make())

        def either_set() -> Value:
            return draw.one((draw.text_set, draw.number_set))()

        def path() -> str:
            """A path that is copied."""
            return draw.one(PATHS if draw.wide else _COPIED)

        ways: dict[str, list[Callable[[], tuple[str, str]]]] = {
            "n": [
                lambda: ("SET", f"n = if_not_exists(n, {v(draw.number)}) + {v(draw.number)}"),
                lambda: ("SET", f"n = {v(draw.number)} - n"),
                lambda: ("ADD", f"n {v(draw.number)}"),
                lambda: ("REMOVE", "n"),
            ],
            "word": [
                lambda: ("SET", f"word = {v(draw.text)}"),
                lambda: ("REMOVE", "word, gone"),
            ],
            "tags": [
                lambda: ("ADD", f"tags {v(draw.text_set)}"),
                lambda: ("DELETE", f"tags {v(draw.text_set)}"),
            ],
            "mixed": [
                lambda: ("SET", f"mixed = {v(draw.anything)}"),
                lambda: ("SET", f"mixed = {path()}"),
                lambda: ("SET", f"mixed = if_not_exists({path()}, {v(draw.anything)})"),
                lambda: ("SET", f"mixed = mixed + {v(draw.number)}"),
                lambda: ("ADD", f"mixed {v(draw.one((draw.number, either_set)))}"),
                lambda: ("DELETE", f"mixed {v(either_set)}"),
            ],
            "list_": [
                lambda: ("SET", f"list_ = list_append(list_, {v(draw.list_)})"),
                lambda: (
                    "SET",
                    f"list_ = list_append({v(draw.list_)}, if_not_exists(list_, {v(draw.list_)}))",
                ),
                lambda: (
                    "SET",
                    f"list_ = list_append(if_not_exists(list_, {v(draw.list_)}), {v(draw.list_)})",
                ),
                lambda: ("SET", f"list_[{draw.one((0, 1, 9))}] = {v(draw.anything)}"),
                lambda: ("REMOVE", draw.one(("list_", "list_[0]", "list_[0], list_[2]"))),
            ],
            "map_": [
                lambda: ("SET", f"map_ = {v(draw.map_)}"),
                lambda: ("SET", f"map_.x = {v(draw.anything)}, #m.#y = map_.x"),
                lambda: ("ADD", f"map_.x {v(draw.number)}"),
                lambda: ("REMOVE", draw.one(("map_", "map_.x", "map_.x, #m.#y"))),
            ],
        }
        if draw.wide:
            ways["list_"] += [
                lambda: ("SET", f"list_ = list_append({v(draw.list_)}, gone)"),
                lambda: ("SET", f"list_[9] = {v(draw.text)}, list_[7] = {v(draw.number)}"),
            ]
        return ways


def _order(value: Value) -> Any:
    ((tag, content),) = value.items()
    return Decimal(content) if tag == "N" else content.encode()
