"""A table of the errors of each program, read from the code that raises them, and what to do.

An error's action is the hint that it is raised with, else the entry of its text in
`program_errors.yaml`, else the entry of its kind there: the name of its class or function.
"""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import yaml

import cirrusmq_client
import cirrusmq_local

from .written_texts import ANYTHING, escaped, text_of

ACTIONS = Path(__file__).with_name("program_errors.yaml")
"""Actions: by text, or by kind where all texts of the kind need the same."""
_LOCAL, _CLIENT = Path(cirrusmq_local.__file__).parent, Path(cirrusmq_client.__file__).parent
_NAMES_FIRST = {"wrong", "_refuse", "TextError"}
"""Kinds whose first argument is a place, and whose second is the text."""
_EXPLAINS = "explain"
"""Part of the names of functions that return an error's text."""


@dataclass(frozen=True)
class Program:
    """A program, and the files in which its errors are."""

    title: str
    introduction: str
    places: Sequence[Path]
    called: frozenset[str]
    """Functions that are called with an error's text: exceptions that users see, and printers."""
    with_exceptions: bool = False
    """True if exceptions that are defined in these places count too."""


PROGRAMS = (
    Program(
        "Sentences of the Python library",
        "Before a call is made, or of a wrong use. `ValueError`, `TypeError` and `RuntimeError` are"
        " Python's own.",
        [_CLIENT],
        frozenset({"ValueError", "TypeError", "RuntimeError", "super().__init__"}),
        with_exceptions=True,
    ),
    Program(
        "On the command line",
        "`cirrusmq` writes an error in one line on standard error and exits with 1, or with 2 where"
        " the command itself is wrong. A refusal of the service has the service's own sentence,"
        " which is above.",
        [_LOCAL / "commands", _LOCAL / "declarations"],
        frozenset({"fail", "_fail", "tell", "_refuse", "wrong", "BadParameter", "TextError"}),
    ),
    Program(
        "At the start of the service on one machine",
        "`cirrusmq up` and `make up` say these; after most of them they end.",
        [_LOCAL / "stack", _LOCAL / "cloud", _LOCAL / "engine"],
        frozenset(
            {"DataError", "AddressError", "OwnFunctionError", "TemplateError", "_tell", "give_up"}
        ),
    ),
)


@dataclass(frozen=True)
class Sentence:
    """An error as it is raised: … stands for a value."""

    kind: str
    text: str
    hint: str | None = None

    @property
    def action(self) -> str | None:
        """The action for it, or None if nothing says so."""
        return self.hint or actions().get(self.text) or actions().get(self.kind)


def program_errors() -> str:
    """A section for each program with a table of its errors."""
    return "\n\n".join(_section(each) for each in PROGRAMS)


def sentences_of(program: Program) -> list[Sentence]:
    """The errors that a program raises or prints, by text."""
    kinds = program.called
    if program.with_exceptions:
        kinds |= {name for place in program.places for name in _exceptions(place)}
    files = [path for place in program.places for path in sorted(place.rglob("*.py"))]
    found = {each.text: each for path in files for each in _sentences(path, kinds)}
    return [found[text] for text in sorted(found, key=lambda text: text.strip("… :").lower())]


@cache
def actions() -> Mapping[str, str]:
    """The file of actions."""
    held: Mapping[str, str] = yaml.safe_load(ACTIONS.read_text("utf-8"))
    return held


def _section(program: Program) -> str:
    rows = [
        f"| {escaped(each.text)} | {each.action} |".replace("\n", " ")
        for each in sentences_of(program)
    ]
    head = f"## {program.title}\n\n{program.introduction}\n\n"
    return head + "\n".join(["| it says | do |", "| --- | --- |", *rows])


def _exceptions(folder: Path) -> frozenset[str]:
    """Names of the classes in a folder that are below an exception."""
    above = {name for name, held in vars(builtins).items() if _is_exception(held)}
    classes = [
        node
        for path in folder.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.ClassDef)
    ]
    found: set[str] = set()
    for _ in classes:  # as many rounds as there can be generations
        more = {
            each.name for each in classes if {ast.unparse(base) for base in each.bases} & above
        } - found
        if not more:
            break
        found |= more
        above |= more
    return frozenset(found)


def _is_exception(held: object) -> bool:
    return isinstance(held, type) and issubclass(held, Exception)


def _sentences(path: Path, kinds: frozenset[str]) -> Iterator[Sentence]:
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Call) and (kind := _called(node.func)) in kinds:
            found = _sentence(kind, node)
        elif isinstance(node, ast.FunctionDef) and _EXPLAINS in node.name:
            found = [Sentence("DataError", text) for text in _returned(node)]
        elif isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "_ADVICE":
            held = node.value.values if isinstance(node.value, ast.Dict) else []
            found = [Sentence("DataError", text_of(each)) for each in held]
        else:
            continue
        yield from (each for each in found if each.text.strip(f"{ANYTHING}:;. "))


def _sentence(kind: str, call: ast.Call) -> list[Sentence]:
    texts = [text_of(each) for each in call.args]
    if kind in _NAMES_FIRST:
        texts = texts[1:]
    option = [text_of(each.value) for each in call.keywords if each.arg == "param_hint"]
    if not texts:
        return []
    hint = texts[1] if kind in {"fail", "_fail"} and len(texts) > 1 else ANYTHING
    text = f"Invalid value for {option[0]}: {texts[0]}" if option else texts[0]
    return [Sentence(kind, text, None if hint == ANYTHING else f"{hint[0].upper()}{hint[1:]}.")]


def _returned(function: ast.FunctionDef) -> Iterator[str]:
    for node in ast.walk(function):
        if isinstance(node, ast.Return) and node.value is not None:
            yield text_of(node.value)


def _called(node: ast.expr) -> str:
    """The name of a called function, without the object that has it."""
    if isinstance(node, ast.Attribute):
        is_own = isinstance(node.value, ast.Call) and node.attr == "__init__"
        return "super().__init__" if is_own else node.attr
    return node.id if isinstance(node, ast.Name) else ""
