"""Requests of the query protocol: a form, as the members that its names describe.

`Tags.member.1.Key=a` is a list of structures, `Attributes.entry.1.key=a` with `.value` is a map,
`MessageAttributes.entry.1.Name` with `.Value.DataType` is one of structures.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from cirrusmq_dialects import forms
from cirrusmq_dialects.sns.errors import SnsError, invalid, missing

Members: TypeAlias = Mapping[str, Any]
_NUMBERS = [str(number) for number in range(1, 11)]
_MAP_KEYS = (("key", "value"), ("Name", "Value"))


def read(form: bytes) -> tuple[str, Members]:
    """Returns the action of a form, and its members. Raises SnsError."""
    try:
        tree = forms.read(form)
    except forms.FormError as error:
        raise invalid(str(error)) from error
    action = tree.pop("Action", None)
    if not isinstance(action, str) or not action:
        raise SnsError("MissingAction", "The request must contain the parameter Action.")
    return action, tree


def text(members: Members, name: str) -> str | None:
    """Returns a text, or None if it is not given."""
    value = members.get(name)
    if isinstance(value, dict):
        raise invalid(f"{name} Reason: must be a text.")
    return value


def needed(members: Members, name: str) -> str:
    """A text that the action needs, of at least one character."""
    value = text(members, name)
    if not value:
        raise missing(name)
    return value


def flag(members: Members, name: str) -> bool:
    """Returns a boolean, False if it is not given."""
    value = (text(members, name) or "false").lower()
    if value not in ("true", "false"):
        raise invalid(f"{name} Reason: must be true or false.")
    return value == "true"


def listed(members: Members, name: str) -> Sequence[Any]:
    """Returns the values of `name.member.n` by their numbers; none if it is not given."""
    return _numbered(members, name, "member")


def structures(members: Members, name: str) -> list[Members]:
    """As `listed`, of structures."""
    found = listed(members, name)
    if not all(isinstance(each, dict) for each in found):
        raise invalid(f"{name} Reason: must be a list of structures.")
    return list(found)


def mapped(members: Members, name: str) -> dict[str, Any]:
    """Returns the map in `name.entry.n`, an empty one if it is not given."""
    found: dict[str, Any] = {}
    for each in _numbered(members, name, "entry"):
        entry = each if isinstance(each, dict) else {}
        key, value = next((pair for pair in _MAP_KEYS if pair[0] in entry), _MAP_KEYS[0])
        if not isinstance(entry.get(key), str):
            raise invalid(f"{name} Reason: an entry has no name.")
        found[entry[key]] = entry.get(value, "")
    return found


def pairs(members: Members, name: str) -> dict[str, str]:
    """As `mapped`, of texts."""
    found = mapped(members, name)
    if not all(isinstance(each, str) for each in found.values()):
        raise invalid(f"{name} Reason: must be a map of texts.")
    return found


def _numbered(members: Members, name: str, step: str) -> Sequence[Any]:
    held = members.get(name) or {}
    inner = held.get(step, {}) if isinstance(held, dict) else None
    if not isinstance(inner, dict):
        if held == "" or inner == "":
            return []  # as an empty list is sent
        raise invalid(f"{name} Reason: must be a list.")
    given = list(inner)
    if given == _NUMBERS[: len(given)]:  # as SDKs send them
        return list(inner.values())
    return [inner[number] for number in sorted(inner, key=_number)]


def _number(given: str) -> tuple[int, str]:
    return (int(given) if given.isascii() and given.isdigit() and len(given) < 8 else 0), given
