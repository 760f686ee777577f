"""The types of the client for TypeScript: an interface for each schema, and one of all calls."""

from __future__ import annotations

import json
import re
import textwrap
from collections.abc import Iterator, Mapping
from typing import Any

_HEAD = """\
// The contract's types, which `make openapi` reads from the OpenAPI document.
//
// Times are RFC 3339 texts. A member with ? may be absent.
"""
_PLAIN = {"string": "string", "integer": "number", "number": "number", "boolean": "boolean"}
_WIDTH = 100


def typescript_types(document: Mapping[str, Any]) -> str:
    """The declarations of all schemas, then `Calls`: method and path -> what a call takes."""
    schemas = document["components"]["schemas"]
    parts = [_HEAD, *(_declaration(name, schema) for name, schema in schemas.items())]
    calls = [
        _call(f"{method.upper()} {path}", operation)
        for path, methods in document["paths"].items()
        for method, operation in methods.items()
    ]
    listed = "\n".join(calls)
    parts.append(
        f"/** Each call: its path's and query's values, its body, its answer. */\n"
        f"export interface Calls {{\n{listed}\n}}\n"
    )
    return "\n".join(parts)


def _declaration(name: str, schema: Mapping[str, Any]) -> str:
    text = _comment(schema.get("description"), "")
    if "properties" not in schema:
        return f"{text}export type {name} = {_type(schema)};\n"
    members = "".join(_members(schema))
    return f"{text}export interface {name} {{\n{members}}}\n"


def _members(schema: Mapping[str, Any]) -> Iterator[str]:
    required = schema.get("required", ())
    for name, held in schema["properties"].items():
        mark = "" if name in required else "?"
        yield f"{_comment(_words(held), '  ')}  {_name(name)}{mark}: {_type(held)};\n"


def _words(schema: Mapping[str, Any]) -> str | None:
    text = schema.get("description")
    if text and "default" in schema and schema["default"] not in ([], {}):
        text += f"; {json.dumps(schema['default'])} unless given"
    return text


def _type(schema: Mapping[str, Any]) -> str:
    if "$ref" in schema:
        return str(schema["$ref"].rpartition("/")[2])
    if "enum" in schema:
        return " | ".join(json.dumps(each) for each in schema["enum"])
    if "const" in schema:
        return json.dumps(schema["const"])
    for several in ("anyOf", "oneOf"):
        if several in schema:
            return " | ".join(dict.fromkeys(map(_type, schema[several])))
    kind = schema.get("type")
    if isinstance(kind, list):
        return " | ".join(_type({**schema, "type": each}) for each in kind)
    if kind == "array":
        item = _type(schema.get("items", {}))
        return f"({item})[]" if " | " in item else f"{item}[]"
    if kind == "object":
        return _object(schema)
    return "null" if kind == "null" else _PLAIN.get(str(kind), "unknown")


def _object(schema: Mapping[str, Any]) -> str:
    if "properties" in schema:
        required = schema.get("required", ())
        members = (
            f"{_name(name)}{'' if name in required else '?'}: {_type(held)}"
            for name, held in schema["properties"].items()
        )
        return f"{{ {'; '.join(members)} }}"
    more = schema.get("additionalProperties")
    return f"Record<string, {_type(more) if isinstance(more, dict) else 'unknown'}>"


def _call(key: str, operation: Mapping[str, Any]) -> str:
    values: dict[str, list[str]] = {"path": [], "query": []}
    for held in operation.get("parameters", ()):
        if held["in"] in values:
            mark = "" if held.get("required") else "?"
            values[held["in"]].append(f"{_name(held['name'])}{mark}: {_type(held['schema'])}")
    members = [f"path: {{ {'; '.join(values['path'])} }}" if values["path"] else "path?: {}"]
    members.append(
        f"query?: {{ {'; '.join(values['query'])} }}" if values["query"] else "query?: {}"
    )
    body = operation.get("requestBody")
    if body is None:
        members.append("body?: undefined")
    else:
        mark = "" if body.get("required") else "?"
        members.append(f"body{mark}: {_type(body['content']['application/json']['schema'])}")
    members.append(f"answer: {_answer(operation)}")
    lines = "".join(f"    {each};\n" for each in members)
    return f"{_comment(operation.get('summary'), '  ')}  {json.dumps(key)}: {{\n{lines}  }};"


def _answer(operation: Mapping[str, Any]) -> str:
    found = [
        _type(held.get("schema", {}))
        for status, response in operation["responses"].items()
        if status.startswith("2")
        for media, held in response.get("content", {}).items()
        if media == "application/json"
    ]
    return " | ".join(dict.fromkeys(found)) or "null"


def _name(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z_]\w*", name) else json.dumps(name)


def _comment(text: str | None, indent: str) -> str:
    if not text:
        return ""
    safe = " ".join(text.split()).replace("*/", "* /")
    if len(indent) + len(safe) + 7 <= _WIDTH:
        return f"{indent}/** {safe} */\n"
    lines = textwrap.wrap(safe, _WIDTH - len(indent) - 3)
    return f"{indent}/**\n" + "".join(f"{indent} * {line}\n" for line in lines) + f"{indent} */\n"
