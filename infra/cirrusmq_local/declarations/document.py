"""The file: parsed to resources, with every value checked, and written from resources.

    version: 1
    queues:
      orders:
        dead_letter: {queue: orders-dead, max_receives: 5}
        receivers: {audit: {start: earliest}}
        grants: {partner: send}
      orders-dead: {}
    topics:
      sales:
        subscriptions:
          billing: {protocol: queue, endpoint: orders}
        grants: {partner: publish}
    schedules:
      daily: {queue: orders, cron: 0 8 * * *, message: {body: count}}

Attributes have the names and values of the HTTP contract; defaults are left out.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from cirrusmq.base.errors import CirrusMQError
from cirrusmq_local.declarations import contract, yaml_text
from cirrusmq_local.declarations.resources import GRANTS, Attributes, Declared, Kind, Place
from cirrusmq_local.declarations.yaml_text import TextError

VERSION = 1
_SECTIONS: Mapping[str, Kind] = {"queues": "queue", "topics": "topic", "schedules": "schedule"}
_WITHIN: Mapping[Kind, Mapping[str, Kind]] = {
    "queue": {"receivers": "receiver", "grants": "grant"},
    "topic": {"subscriptions": "subscription", "grants": "topic_grant"},
    "schedule": {},
}
_Path = tuple[str, ...]


class BadFile(Exception):
    """The file cannot be applied: one text for each fault, with its line."""

    def __init__(self, problems: list[tuple[int, str]]) -> None:
        self.problems = sorted(problems)
        super().__init__("; ".join(f"line {line}: {text}" for line, text in self.problems))


def parse(text: str) -> dict[Place, Declared]:
    """Returns the resources that a file declares, each with all attributes. Raises BadFile."""
    try:
        held, lines = yaml_text.load(text)
    except TextError as error:
        raise BadFile([(error.line, error.detail)]) from error
    reader = _Reader(lines)
    reader.read(held)
    if reader.problems:
        raise BadFile(reader.problems)
    return reader.resources


def write(resources: Mapping[Place, Attributes]) -> str:
    """Returns the file that declares these resources, sorted by name, without defaults."""
    held: dict[str, Any] = {"version": VERSION}
    for section, kind in _SECTIONS.items():
        held[section] = {
            place.name: dict(contract.differing(place, resources[place]))
            | _nested(place, resources)
            for place in sorted(each for each in resources if each.kind == kind)
        }
    if not held["schedules"]:
        del held["schedules"]  # an earlier release reads the file
    return yaml_text.dump(held)


def _nested(container: Place, resources: Mapping[Place, Attributes]) -> dict[str, Any]:
    shown: dict[str, Any] = {}
    for section, kind in _WITHIN[container.kind].items():
        within = sorted(
            each for each in resources if each.kind == kind and each.parent == container.name
        )
        if within:
            shown[section] = {place.name: _short(place, resources[place]) for place in within}
    return shown


def _short(place: Place, attributes: Attributes) -> Any:
    if place.kind in GRANTS:
        return attributes["permission"]
    return dict(contract.differing(place, attributes))


class _Reader:
    """Reads valid parts, and notes each fault, so that one read shows all faults."""

    def __init__(self, lines: Mapping[_Path, int]) -> None:
        self.resources: dict[Place, Declared] = {}
        self.problems: list[tuple[int, str]] = []
        self._lines = lines
        self._names: dict[Place, Place] = {}

    def read(self, held: Any) -> None:
        if not isinstance(held, dict):
            self._refuse((), f"must have version: {VERSION}, and queues or topics")
            return
        if held.get("version") != VERSION or isinstance(held.get("version"), bool):
            self._refuse(("version",), f"version: must be {VERSION}")
        for name in held:
            if name not in ("version", *_SECTIONS):
                self._refuse((name,), f"{name}: must be version, {' or '.join(_SECTIONS)}")
        for section, kind in _SECTIONS.items():
            for name, given, path in self._mappings(held.get(section), (section,)):
                self._container(Place(kind, name), given, path)

    def _container(self, place: Place, given: dict[str, Any], path: _Path) -> None:
        sections = _WITHIN[place.kind]
        plain = {name: value for name, value in given.items() if name not in sections}
        attributes = self._resource(place, plain, path)
        for section, kind in sections.items():
            for name, inner, inner_path in self._mappings(
                _granted(kind, given.get(section)), (*path, section)
            ):
                # Without its topic's kind a filter cannot be checked: the topic's fault is enough.
                if attributes is not None:
                    self._resource(Place(kind, name, place.name), inner, inner_path, attributes)

    def _resource(
        self, place: Place, given: Attributes, path: _Path, topic: Attributes | None = None
    ) -> Attributes | None:
        lines = {".".join(at[len(path) :]): line for at, line in self._under(path)}
        try:
            contract.check_place(place)
            twin = self._names.setdefault(place.folded, place)
            if twin != place:
                self._refuse(path, f"{place}: is {twin} to the service, which ignores case")
                return None
            subscribed = topic if place.kind == "subscription" else None
            attributes = contract.complete(place, given, subscribed)
        except CirrusMQError as error:
            declared = Declared(attributes={}, lines=lines)
            line = declared.line_of(getattr(error, "parameter", None))
            self.problems.append((line, f"{place}: {error.detail}"))
            return None
        self.resources[place] = Declared(attributes=attributes, lines=lines)
        return attributes

    def _under(self, path: _Path) -> Iterator[tuple[_Path, int]]:
        yield path, self._line(path)
        for at, line in self._lines.items():
            if len(at) > len(path) and at[: len(path)] == path:
                yield at, line

    def _mappings(self, held: Any, path: _Path) -> Iterator[tuple[str, dict[str, Any], _Path]]:
        """Yields the entries of a mapping of mappings; an empty entry is `{}`."""
        if held is None:
            return
        if not isinstance(held, dict):
            self._refuse(path, f"{'.'.join(path)}: must be a mapping of names to attributes")
            return
        for name, given in held.items():
            here = (*path, name)
            if given is None or isinstance(given, dict):
                yield name, given or {}, here
            else:
                self._refuse(here, f"{'.'.join(here)}: must be a mapping of attributes")

    def _refuse(self, path: _Path, text: str) -> None:
        self.problems.append((self._line(path), text))

    def _line(self, path: _Path) -> int:
        while path and path not in self._lines:
            path = path[:-1]
        return self._lines[path]


def _granted(kind: Kind, held: Any) -> Any:
    """`bob: send` is short for `bob: {permission: send}`."""
    if kind not in GRANTS or not isinstance(held, dict):
        return held
    return {
        name: {"permission": given} if isinstance(given, str) else given
        for name, given in held.items()
    }
