"""The client's types: a TypedDict for each struct that a route answers with, and for attributes;
a class for each error of the contract."""

from __future__ import annotations

import keyword
import re
import subprocess
import sys
import textwrap
from collections.abc import Iterable, Iterator, Mapping
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

import msgspec
from msgspec import Meta, UnsetType

from cirrusmq.base import errors
from cirrusmq_lambda.answers.body import Time
from cirrusmq_lambda.http import Route

from .operations import OPERATIONS
from .policies import filter_schema, retry_schema
from .routes import answers_of

_HEAD = '''\
"""The JSON objects of answers, as `make openapi` reads them from the service's structs.

Times are RFC 3339 texts, as the service sends them; a field that is NotRequired may be absent.
"""

from __future__ import annotations

from typing import Any, Literal, NotRequired, TypedDict
'''


_UNSET = re.compile(r"; \w+ that are not given are UNSET")
"""Members that only the service's own struct has."""
_INPUT_HEAD = '''\
"""Attributes as requests have them, as `make openapi` reads them from the service's structs.

An absent field does not change, or has its default in a create; None removes a value.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, NotRequired, TypedDict
'''

_ERRORS = re.compile(r"(?<=`make openapi` from the service's errors:\n).*(?=\n# End\n)", re.DOTALL)
"""The part of the client's errors that is made."""


def error_classes(module: str) -> str:
    """The client's module of errors, with a class for each code of the contract."""
    base = errors.CirrusMQError
    kinds = [each for each in vars(errors).values() if isinstance(each, type)]
    classes = [
        f'\n\nclass {each.__name__}({base.__name__}):\n    """{each.__doc__}"""\n'
        for each in kinds
        if each.__base__ is base
    ]
    made, parts = _ERRORS.subn(lambda _: "".join(classes) + "\n", module)
    assert parts == 1, "the module has not one part for the classes"
    return made


def answer_types(routes: Mapping[str, Route]) -> str:
    """The module with the types of all answers of these routes."""
    shapes = (shape for route in routes.values() for shape in answers_of(route).values())
    return _module(_HEAD, [shape for shape in shapes if isinstance(shape, type)])


def input_types() -> str:
    """The module with the types of the attributes that are given to what is made or changed."""
    changed = ("PUT", "PATCH")
    bodies = (each.body for key, each in OPERATIONS.items() if key.startswith(changed))
    head = f"{_INPUT_HEAD}\n\n{_retry_type()}\n\n\n{_filter_type()}\n"
    structs = [body for body in bodies if body and body.__name__.endswith("Input")]
    return _module(head, structs, {"retry": "RetryInput", "filter": "FilterInput"})


def _retry_type() -> str:
    """The TypedDict of a retry policy: the members of all of them."""
    policies = retry_schema()["oneOf"]
    members = {
        name: schema
        for policy in policies
        for name, schema in policy["properties"].items()
        if name != "policy"
    }
    names = ", ".join(repr(policy["properties"]["policy"]["const"]) for policy in policies)
    lines = [f"    {name}: NotRequired[{_json_type(each)}]" for name, each in members.items()]
    return "\n".join(
        [
            "class RetryInput(TypedDict):",
            '    """How deliveries are retried; the manual has which members each takes."""\n',
            f"    policy: Literal[{names}]",
            *lines,
        ]
    )


def _filter_type() -> str:
    members = filter_schema()["properties"]
    lines = [f"    {name}: NotRequired[{_json_type(each)}]" for name, each in members.items()]
    text = '    """Which messages pass: one of the members, or `sql` beside one."""\n'
    return "\n".join(["class FilterInput(TypedDict):", text, *lines])


def _json_type(schema: Mapping[str, Any]) -> str:
    """The type of what a schema describes."""
    match schema["type"]:
        case "array":
            return f"Sequence[{_json_type(schema['items'])}]"
        case "object":
            return "dict[str, Any]"
        case other:
            return {"integer": "int", "number": "float", "string": "str"}[other]


def _module(head: str, structs: Iterable[type], objects: Mapping[str, str] | None = None) -> str:
    """The text of a module; `objects`: types of fields that are plain objects in the structs."""
    found: dict[type, None] = {}
    for struct in structs:
        _add(struct, found)
    text = head + "".join(f"\n\n{_definition(struct, objects or {})}\n" for struct in found)
    command = [sys.executable, "-m", "ruff", "format", "--line-length=100", "-"]
    return subprocess.run(
        command, input=text, stdout=subprocess.PIPE, check=True, encoding="utf-8"
    ).stdout


def _add(struct: type, found: dict[type, None]) -> None:
    """Add a struct behind its base and the structs of its fields."""
    if struct in found:
        return
    if _base(struct) is not None:
        _add(struct.__mro__[1], found)
    for hint in get_type_hints(struct).values():
        for part in _parts(hint):
            if isinstance(part, type) and issubclass(part, msgspec.Struct):
                _add(part, found)
    found[struct] = None


def _parts(hint: Any) -> Iterator[Any]:
    yield hint
    for argument in get_args(hint):
        yield from _parts(argument)


def _base(struct: type) -> type | None:
    """The struct whose fields it has, too."""
    base = struct.__mro__[1]
    return base if getattr(base, "__struct_fields__", ()) else None


def _definition(struct: type, objects: Mapping[str, str]) -> str:
    """The TypedDict; by a call where a field's name is a keyword."""
    base = _base(struct)
    hints = get_type_hints(struct, include_extras=True)
    inherited = getattr(base, "__struct_fields__", ())
    fields = {
        field.encode_name: (hints[field.name], _member(hints[field.name], field, struct, objects))
        for field in msgspec.structs.fields(struct)
        if field.name not in inherited
    }
    text = f'"""{_UNSET.sub("", str(struct.__doc__))}"""'
    if any(map(keyword.iskeyword, fields)):
        members = ", ".join(f'"{name}": {shown!r}' for name, (_, shown) in fields.items())
        return f'{struct.__name__} = TypedDict("{struct.__name__}", {{{members}}})\n{text}'
    lines = [f"class {struct.__name__}({base.__name__ if base else 'TypedDict'}):", f"    {text}\n"]
    for name, (hint, shown) in fields.items():
        lines.append(f"    {name}: {shown}")
        lines += [
            textwrap.fill(f'"""{each}"""', 99, initial_indent="    ", subsequent_indent="    ")
            for each in _descriptions(hint)
        ]
    return "\n".join(lines)


def _member(
    hint: Any, field: msgspec.structs.FieldInfo, struct: Any, objects: Mapping[str, str]
) -> str:
    absent = UnsetType in get_args(hint)
    # Attributes that are given may be left out if they have a default.
    left_out = (struct.__struct_config__.omit_defaults or objects) and not field.required
    shown = _shown(hint, objects.get(field.encode_name))
    return f"NotRequired[{shown}]" if absent or left_out else shown


def _descriptions(hint: Any) -> list[str]:
    metas = [part for part in _parts(hint) if isinstance(part, Meta) and part.description]
    return [str(meta.description) for meta in metas if meta not in get_args(Time)]


def _shown(hint: Any, as_object: str | None = None) -> str:
    """A type as it is written; `as_object`: the name to write for a plain object."""
    origin, given = get_origin(hint), get_args(hint)
    if origin is Annotated:
        return _shown(given[0], as_object)
    if origin in (Union, UnionType):
        return " | ".join(_shown(each, as_object) for each in given if each is not UnsetType)
    if origin is Literal:
        return f"Literal[{', '.join(map(repr, given))}]"
    if origin is tuple and given[-1] is Ellipsis:
        return f"list[{_shown(given[0])}]"  # as JSON has it
    if origin is dict and as_object:
        return as_object
    if origin is not None:
        return f"{origin.__name__}[{', '.join(map(_shown, given))}]"
    return "None" if hint is NoneType else str(hint.__name__)
