"""EMQ's contract: the structs and methods of `emq.thrift`, as Apache's package needs them."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar, NamedTuple

from thrift.protocol.TBase import TBase
from thrift.Thrift import TType

_STRUCT = re.compile(r"^(?:struct|exception) (\w+) \{(.*?)\}", re.MULTILINE | re.DOTALL)
_FIELD = re.compile(r"(\d+): (\S+) (\w+)")
_SERVICE = re.compile(r"^service (\w+)(?: extends (\w+))? \{(.*?)^\}", re.MULTILINE | re.DOTALL)
_METHOD = re.compile(r'(\S+) (\w+)\(1: (\w+) \w+\) throws [^"]*"([\w.]+)"(, audit)?')
_TYPES = {
    "bool": (TType.BOOL, None),
    "i32": (TType.I32, None),
    "i64": (TType.I64, None),
    "string": (TType.STRING, None),
    "binary": (TType.STRING, "BINARY"),
}
"""Types as Thrift has them on the wire, and what its reader needs besides."""
of: Any = SimpleNamespace()
"""The structs, by their names."""


class Struct(TBase):  # type: ignore[misc]
    """A struct: a field that is not given is None, and is not written."""

    __slots__ = ("__dict__",)
    thrift_spec: ClassVar[Any] = ()

    def __init__(self, **values: Any) -> None:
        for field in filter(None, self.thrift_spec):
            setattr(self, field[2], values.pop(field[2], None))
        assert not values, values


class Method(NamedTuple):
    """A method: the struct of its argument, the type of its result, its function."""

    argument: str
    result: str
    function: str
    changes: bool
    """True if its native call is in the audit."""


@cache
def struct(name: str, fields: str) -> type[Struct]:
    """Makes a struct of the text of its fields, once."""
    found = {int(number): (kind, field) for number, kind, field in _FIELD.findall(fields)}
    spec: list[Any] = [None] * (1 + max(found, default=-1))
    for number, (kind, field) in found.items():
        wire, detail = _type(kind)
        spec[number] = (number, wire, field, detail, None)
    return type(name, (Struct,), {"thrift_spec": tuple(spec)})


def result_of(kind: str) -> type[Struct]:
    """Makes the struct of the result of a method; `kind`: the type of its value, or `void`."""
    return struct("Result", "1: Error e" if kind == "void" else f"0: {kind} success 1: Error e")


def _type(kind: str) -> tuple[int, Any]:
    """Returns a type as `_TYPES` has it."""
    if kind in _TYPES:
        return _TYPES[kind]
    outer, _, inner = kind.rstrip(">").partition("<")
    if not inner:
        made = getattr(of, kind)
        return TType.STRUCT, (made, made.thrift_spec)
    element = (*_type(inner.removeprefix("string,")), False)
    return (TType.LIST, element) if outer == "list" else (TType.MAP, (TType.STRING, None, *element))


METHODS: dict[str, dict[str, Method]] = {}
"""The methods of each service, by their names: its own and its base's."""
_IDL = Path(__file__).with_name("emq.thrift").read_text("utf-8")
for _name, _fields in _STRUCT.findall(_IDL):
    setattr(of, _name, struct(_name, _fields))
for _name, _base, _methods in _SERVICE.findall(_IDL):
    METHODS[_name] = dict(METHODS.get(_base, {}))
    for _result, _method, _argument, _function, _audit in _METHOD.findall(_methods):
        METHODS[_name][_method] = Method(_argument, _result, _function, bool(_audit))
