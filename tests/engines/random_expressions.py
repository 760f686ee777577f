"""Random values, conditions and updates for the comparison with moto.

They avoid the differences that MOTO_DIFFERS names.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any

from hypothesis import strategies as st

PARTITIONS = ("p", "q")
SORT_KEYS = ("a", "ab", "b", "é")

keys = st.fixed_dictionaries(
    {
        "pk": st.sampled_from(PARTITIONS).map(lambda text: {"S": text}),
        "sk": st.sampled_from(SORT_KEYS).map(lambda text: {"S": text}),
    }
)
texts = st.sampled_from(["", "a", "ab", "b", "é", "10"]).map(lambda text: {"S": text})
numbers = st.sampled_from(["2", "-7", "3.5", "10", "100", "-0.25"]).map(lambda text: {"N": text})
text_sets = st.lists(st.sampled_from("abc"), min_size=1, unique=True).map(lambda e: {"SS": e})
number_sets = st.lists(st.sampled_from(["2", "3.5", "-7"]), min_size=1, unique=True).map(
    lambda e: {"NS": e}
)
plain = st.one_of(texts, numbers, text_sets, number_sets)
lists = st.lists(plain, max_size=3).map(lambda elements: {"L": elements})
maps = st.dictionaries(st.sampled_from(["x", "y"]), plain).map(lambda members: {"M": members})
comparable = st.one_of(texts, numbers, text_sets, number_sets, lists, maps)
anything = st.one_of(
    comparable,
    st.booleans().map(lambda value: {"BOOL": value}),
    st.just({"NULL": True}),
    st.sampled_from(["0", "1"]).map(lambda text: {"N": text}),
    st.lists(maps, min_size=1, max_size=2).map(lambda elements: {"L": elements}),
)
_each = {
    "n": numbers,
    "word": texts,
    "tags": text_sets,
    "list_": lists,
    "map_": maps,
    "mixed": anything,
}
full = st.fixed_dictionaries(_each)
attributes = st.one_of(full, st.fixed_dictionaries({}, optional=_each))
items = st.builds(lambda key, more: {**key, **more}, keys, attributes)
paths = st.sampled_from(
    [
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
    ]
)
type_tags = st.sampled_from(["S", "N", "SS", "NS", "L", "M", "BOOL", "NULL"])


class Request:
    """Collects the placeholders of one request's expressions."""

    def __init__(self) -> None:
        self.values: dict[str, Any] = {}
        self.texts: list[str] = []
        self.count = 0

    def value(self, value: Mapping[str, Any]) -> str:
        name = f":v{self.count}"
        self.count += 1
        self.values[name] = value
        return name

    def members(self) -> dict[str, Any]:
        used = " ".join(self.texts)
        names = {"#m": "map_", "#y": "y"}
        request: dict[str, Any] = {}
        if any(name in used for name in names):
            request["ExpressionAttributeNames"] = {n: a for n, a in names.items() if n in used}
        if self.values:
            request["ExpressionAttributeValues"] = self.values
        return request


def condition(draw: st.DrawFn, request: Request, depth: int = 2) -> str:
    """The text of a random condition; its values are added to the request."""
    joined = draw(st.sampled_from(["", "", "NOT", "AND", "OR"])) if depth else ""
    if joined == "NOT":
        return f"NOT ({condition(draw, request, depth - 1)})"
    if joined:
        left, right = (condition(draw, request, depth - 1) for _ in range(2))
        return f"{left} {joined} {right}"
    path = draw(paths)
    kind = draw(st.integers(0, 7))
    if kind == 0:
        return draw(st.sampled_from([f"attribute_exists({path})", f"attribute_not_exists({path})"]))
    if kind == 1:
        return f"attribute_type({path}, {request.value({'S': draw(type_tags)})})"
    if kind == 2:
        return f"begins_with({path}, {request.value(draw(texts))})"
    if kind == 3:
        return f"contains({path}, {request.value(draw(plain))})"
    if kind == 4:
        listed = ", ".join(request.value(draw(comparable)) for _ in range(draw(st.integers(1, 3))))
        return f"{path} IN ({listed})"
    if kind == 5:
        tag = draw(st.sampled_from(["S", "L", "M", "SS", "NS"]))
        guard = f"attribute_type({path}, {request.value({'S': tag})})"
        number = draw(st.integers(2, 3))
        comparator = draw(st.sampled_from(["=", "<", ">="]))
        return f"({guard} AND size({path}) {comparator} {request.value({'N': str(number)})})"
    if kind == 6:
        return f"{path} {draw(st.sampled_from(['=', '<>']))} {request.value(draw(comparable))}"
    return _ordering(draw, request, path)


def _ordering(draw: st.DrawFn, request: Request, path: str) -> str:
    values = draw(st.sampled_from([texts, numbers]))
    low, high = sorted((draw(values), draw(values)), key=_order)
    guard = f"attribute_type({path}, {request.value({'S': next(iter(low))})})"
    comparator = draw(st.sampled_from(["<", "<=", ">", ">=", "BETWEEN"]))
    if comparator == "BETWEEN":
        return f"({guard} AND {path} BETWEEN {request.value(low)} AND {request.value(high)})"
    return f"({guard} AND {path} {comparator} {request.value(low)})"


def _order(value: Mapping[str, str]) -> Any:
    ((tag, content),) = value.items()
    return Decimal(content) if tag == "N" else content.encode()


def update(draw: st.DrawFn, request: Request) -> str:
    """The text of a random update: some attributes, each changed in one way."""

    def v(values: st.SearchStrategy[Any]) -> str:
        return request.value(draw(values))

    either_set = st.one_of(text_sets, number_sets)
    ways: dict[str, list[Callable[[], tuple[str, str]]]] = {
        "n": [
            lambda: ("SET", f"n = if_not_exists(n, {v(numbers)}) + {v(numbers)}"),
            lambda: ("SET", f"n = {v(numbers)} - n"),
            lambda: ("ADD", f"n {v(numbers)}"),
            lambda: ("REMOVE", "n"),
        ],
        "word": [
            lambda: ("SET", f"word = {v(texts)}"),
            lambda: ("REMOVE", "word, gone"),
        ],
        "tags": [
            lambda: ("ADD", f"tags {v(text_sets)}"),
            lambda: ("DELETE", f"tags {v(text_sets)}"),
        ],
        "mixed": [
            lambda: ("SET", f"mixed = {v(anything)}"),
            lambda: ("SET", f"mixed = {draw(paths)}"),
            lambda: ("SET", f"mixed = if_not_exists({draw(paths)}, {v(anything)})"),
            lambda: ("SET", f"mixed = mixed + {v(numbers)}"),
            lambda: ("ADD", f"mixed {v(st.one_of(numbers, either_set))}"),
            lambda: ("DELETE", f"mixed {v(either_set)}"),
        ],
        "list_": [
            lambda: ("SET", f"list_ = list_append(list_, {v(lists)})"),
            lambda: ("SET", f"list_ = list_append({v(lists)}, if_not_exists(list_, {v(lists)}))"),
            lambda: ("SET", f"list_ = list_append(if_not_exists(list_, {v(lists)}), {v(lists)})"),
            lambda: ("SET", f"list_[{draw(st.sampled_from([0, 1, 9]))}] = {v(anything)}"),
            lambda: ("REMOVE", draw(st.sampled_from(["list_", "list_[0]", "list_[0], list_[2]"]))),
        ],
        "map_": [
            lambda: ("SET", f"map_ = {v(maps)}"),
            lambda: ("SET", f"map_.x = {v(anything)}, #m.#y = map_.x"),
            lambda: ("ADD", f"map_.x {v(numbers)}"),
            lambda: ("REMOVE", draw(st.sampled_from(["map_", "map_.x", "map_.x, #m.#y"]))),
        ],
    }
    clauses: dict[str, list[str]] = {}
    chosen = draw(st.lists(st.sampled_from(sorted(ways)), min_size=1, max_size=3, unique=True))
    for attribute in chosen:
        clause, text = draw(st.sampled_from(ways[attribute]))()
        clauses.setdefault(clause, []).append(text)
    return " ".join(f"{clause} {', '.join(texts)}" for clause, texts in clauses.items())
