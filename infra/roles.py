"""The review list of IAM: each role's trust, actions, resources and keys, on one page.

python -m infra.roles   writes infra/roles.md from the templates in CloudFormation's form; a test
compares. It needs .venv-sam (`make template` makes it).
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).resolve().parents[1]
TEMPLATES = (
    "template.yaml",
    *sorted(str(path.relative_to(ROOT)) for path in ROOT.glob("infra/*/template.yaml")),
)
PAGE = ROOT / "infra/roles.md"
_HEAD = """\
# Roles

Made by `python -m infra.roles` from the templates with what SAM adds; a test compares. Keys are the
beginnings of DynamoDB's partition keys that a statement is confined to: `A#` accounts with their
queues and topics, `C#` counters, `E#` changes in the audit, `I#` resources, `K#` access keys, `P#`
parked shares, `Q#` queues and their parcels, `S#` schedules, `T#` topics, and counts of calls.
"""


def page(documents: Iterable[Mapping[str, Any]]) -> str:
    """Returns the page of all roles and customer-managed policies in transformed templates."""
    found: dict[str, tuple[str, Mapping[str, Any]]] = {}
    for document in documents:
        for name, resource in document["Resources"].items():
            if resource["Type"] in ("AWS::IAM::Role", "AWS::IAM::ManagedPolicy"):
                found[name] = (resource["Type"], resource["Properties"])
    return _HEAD + "".join("\n" + "\n".join(_section(name, *found[name])) for name in sorted(found))


def _section(name: str, kind: str, properties: Mapping[str, Any]) -> Iterator[str]:
    if kind.endswith("ManagedPolicy"):
        yield f"## {name} (a policy that roles carry)\n"
        yield from _table(properties["PolicyDocument"]["Statement"])
        return
    yield f"## {name}\n"
    for trust in properties["AssumeRolePolicyDocument"]["Statement"]:
        services = ", ".join(_texts(trust["Principal"]["Service"]))
        condition = _conditions(trust)
        yield f"Taken by {services}" + (f", where {condition}." if condition else ".")
    carried = [_text(each).rpartition("/")[2] for each in properties.get("ManagedPolicyArns", [])]
    if carried:
        yield f"Carries {', '.join(carried)}."
    if "PermissionsBoundary" in properties:
        yield f"May do at most what {_text(properties['PermissionsBoundary'])} allows."
    statements = [
        each
        for policy in properties.get("Policies", [])
        for each in policy["PolicyDocument"]["Statement"]
    ]
    if statements:
        yield ""
        yield from _table(statements)
    else:
        yield ""


def _table(statements: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    yield "| for | actions | on | keys and conditions |"
    yield "| --- | --- | --- | --- |"
    for statement in statements:
        condition, each, _ = statement.get("Fn::If", ("", statement, None))
        cells = (
            each.get("Sid", "(by SAM)"),
            ", ".join(_texts(each["Action"])),
            ", ".join(_texts(each["Resource"])),
            _conditions(each) + (f"if {condition}" if condition else ""),
        )
        yield "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"
    yield ""


def _conditions(statement: Mapping[str, Any]) -> str:
    told = []
    for tests in statement.get("Condition", {}).values():
        for key, wanted in tests.items():
            values = ", ".join(_texts(wanted))
            told.append(values if key == "dynamodb:LeadingKeys" else f"{key} is {values}")
    return "; ".join(told)


def _texts(value: Any) -> list[str]:
    return [_text(each) for each in (value if isinstance(value, list) else [value])]


def _text(value: Any) -> str:
    """Returns a value, or the function for it, as readable text."""
    match value:
        case str():
            return value
        case {"Fn::GetAtt": list() as parts}:
            return ".".join(parts)
        case {"Fn::GetAtt": str() as name} | {"Ref": str() as name} | {"Fn::Sub": str() as name}:
            return name
        case {"Fn::Join": [separator, parts]}:
            return str(separator).join(map(_text, parts))
    return json.dumps(value)


def transform(folder: Path) -> list[Mapping[str, Any]]:
    """Returns the templates in CloudFormation's form, through files in a folder."""
    program = (ROOT / ".venv-sam/bin/python", ROOT / "infra/transform.py")
    subprocess.run([*map(str, (*program, ROOT, folder)), *TEMPLATES], check=True)
    return [yaml.safe_load((folder / name).read_text(encoding="utf-8")) for name in TEMPLATES]


def main() -> None:
    """Writes the page."""
    with tempfile.TemporaryDirectory() as folder:
        PAGE.write_text(page(transform(Path(folder))), encoding="utf-8")
    print(f"{PAGE.relative_to(ROOT)} is written", file=sys.stderr)


if __name__ == "__main__":
    main()
