"""Parts of the pages that are made from the contract, so that no number is written by hand twice.

A part stands between `<!-- made: KIND NAME -->` and `<!-- end -->`. `fields` has the name of a
schema of the OpenAPI document; `errors` is all codes of problems, `troubleshooting` a section for
each of them, `parameters` all parameters of the template. The parts are in the Markdown too, for a
reader of the repository: `python -m infra.manual --write` writes them, and `--check`, a part of
`make lint`, names pages with stale ones. The site makes them again.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from cirrusmq_lambda import problems
from cirrusmq_local.cloud.cloudformation import read
from cirrusmq_local.cloud.template import TEMPLATE

from .error_texts import contract_errors, troubleshooting

WHEN = Path(__file__).with_name("parameters.yaml")
"""When a parameter is changed, by name."""
DOCUMENT = Path(problems.__file__).with_name("openapi.json")
_PART = re.compile(r"^<!-- made: (\w+) ?(\w*) -->\n(?:.*?\n)??<!-- end -->$", re.M | re.S)
_NAMED = {
    "RetryPolicy": "[a policy](retries.md#the-policies-waits-and-backoff)",
    "Filter": "[a filter](topics.md#tags)",
    "DeadLetterInput": "`queue`, and `max_receives` or `max_age_seconds`, or both",
    "BreakerInput": "`share`, a number from 0.1 to 1 (0.5)",
    "InvokeInput": "`function`, and `max_concurrency`, `batch`, `timeout_seconds`, `event_source`,"
    " `breaker`",
}


def with_tables(text: str) -> str:
    """A page's Markdown with its made parts; KeyError for a kind or schema that is not there."""
    return _PART.sub(lambda part: _MAKERS[part[1]](part[2]), text)


def with_marked_tables(text: str) -> str:
    """A page's Markdown with its made parts between their marks, as it is in the repository."""

    def written(part: re.Match[str]) -> str:
        head = part[0].partition("\n")[0]
        return f"{head}\n\n{_MAKERS[part[1]](part[2]).strip()}\n\n<!-- end -->"

    return _PART.sub(written, text)


def _fields(name: str) -> str:
    rows = ["| field | takes | default |", "| --- | --- | --- |"]
    for field, schema in schemas()[name]["properties"].items():
        rows.append(f"| `{field}` | {_takes(schema)} | {_default(schema.get('default'))} |")
    return "\n".join(rows)


def _default(held: Any) -> str:
    if held is None or held in ({}, []):
        return ""
    is_number = isinstance(held, int | float) and not isinstance(held, bool)
    return f"{held:,}" if is_number else f"`{json.dumps(held)}`"


def _takes(schema: Mapping[str, Any]) -> str:
    """Return the values of a field in words, from itself or its schema."""
    parts = [part for part in schema.get("anyOf", [schema]) if part.get("type") != "null"]
    words: list[str] = []
    for part in parts:
        reference = part.get("$ref", "").rpartition("/")[2]
        if reference:
            words.append(_NAMED[reference])
        elif "description" in part:
            words.append(part["description"])
        elif "enum" in part:
            words.append(", ".join(f"`{value}`" for value in part["enum"]))
        else:
            words.append({"boolean": "`true`, `false`", "string": "a text"}[part["type"]])
    return ", or ".join(words).replace("|", "\\|")


def _errors(_: str) -> str:
    rows = ["| code | status | when |", "| --- | --- | --- |"]
    for kind in contract_errors():
        said = " ".join((kind.__doc__ or "").split())
        rows.append(f"| `{kind.__name__}` | {problems.status_of(kind.__name__)} | {said} |")
    return "\n".join(rows)


def _parameters(_: str) -> str:
    """A table for each of the template's groups."""
    template, when = read(TEMPLATE), yaml.safe_load(WHEN.read_text("utf-8"))
    groups = template["Metadata"]["AWS::CloudFormation::Interface"]["ParameterGroups"]
    lines: list[str] = []
    for group in groups:
        lines += [f"## {group['Label']['default']}", ""]
        lines += [
            "| parameter | takes | default | what it does | change it when |",
            "| --- " * 5 + "|",
        ]
        for name in group["Parameters"]:
            held = template["Parameters"][name]
            default = f"`{held['Default']}`" if str(held["Default"]) else "none"
            cells = (f"`{name}`", _values(held), default, held["Description"], when[name])
            lines.append(f"| {' | '.join(cells)} |")
        lines.append("")
    return "\n".join(lines)


def _values(held: Mapping[str, Any]) -> str:
    """The values that a parameter takes, in words."""
    if "AllowedValues" in held:
        return ", ".join(f"`{value}`" for value in held["AllowedValues"])
    if held["Type"] == "Number":
        return f"from {held['MinValue']}" + (
            f" to {held['MaxValue']}" if "MaxValue" in held else ""
        )
    return "a list" if held["Type"] == "CommaDelimitedList" else "a text"


@cache
def schemas() -> dict[str, Any]:
    """The schemas of the OpenAPI document."""
    read: dict[str, Any] = json.loads(DOCUMENT.read_text("utf-8"))["components"]["schemas"]
    return read


_MAKERS = {
    "fields": _fields,
    "errors": _errors,
    "troubleshooting": lambda _: troubleshooting(),
    "parameters": _parameters,
}
