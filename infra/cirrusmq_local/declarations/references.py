"""Checks the queues and topics that resources name: they must exist and be of the right kind."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from cirrusmq_local.declarations.resources import Attributes, Declared, Place, dead_letters_of


def check_references(
    declared: Mapping[Place, Declared], final: Mapping[Place, Attributes]
) -> list[tuple[int, str]]:
    """Returns the faults, with lines of the file. `final`: all resources after the plan."""
    problems = []
    others = {place: held for place, held in final.items() if place not in declared}
    for place, each in declared.items():
        for parameter, reason in _wrong(place, each.attributes, final, others):
            text = f"{place}: {parameter}: {reason}"
            problems.append((each.line_of(parameter), text))
    return problems


def _wrong(
    place: Place,
    attributes: Attributes,
    final: Mapping[Place, Attributes],
    others: Mapping[Place, Attributes],
) -> Iterator[tuple[str, str]]:
    if place.kind == "queue":
        dead_letter = attributes["dead_letter"]
        if dead_letter is None:
            return
        name = dead_letter["queue"]
        if name.lower() == place.name.lower():
            yield "dead_letter.queue", "must be another queue"
        else:
            yield from _wrong_target("dead_letter.queue", name, attributes["ordered"], final)
            yield from _used(place, others)
    if place.kind == "schedule":
        if "topic" in attributes and Place("topic", attributes["topic"]) not in final:
            name = attributes["topic"]
            yield "topic", f"there is no topic {name}, neither in the file nor in the account"
        target = final.get(Place("queue", attributes.get("queue", "")))
        if "queue" in attributes and target is None:
            yield "queue", _missing(attributes["queue"])
        if target is not None and target["ordered"]:
            yield "queue", f"must not be ordered, and {attributes['queue']} is"
    if place.kind == "subscription":
        if attributes["protocol"] == "queue":
            endpoint = attributes["endpoint"]
            if Place("queue", endpoint) not in final:
                yield "endpoint", _missing(endpoint)
        name = attributes["dead_letter_queue"]
        if name is not None:
            yield from _wrong_target(
                "dead_letter_queue", name, bool(attributes.get("ordered")), final
            )


def _wrong_target(
    parameter: str, name: str, ordered: bool, final: Mapping[Place, Attributes]
) -> Iterator[tuple[str, str]]:
    target = final.get(Place("queue", name))
    if target is None:
        yield parameter, _missing(name)
    elif target["dead_letter"] is not None:
        yield parameter, f"must be a queue without dead_letter, and {name} has one"
    elif target["ordered"] and not ordered:
        yield parameter, f"must not be ordered, and {name} is"


def _used(place: Place, others: Mapping[Place, Attributes]) -> Iterator[tuple[str, str]]:
    """Yields the fault that a resource outside of the file uses this queue for dead letters."""
    for other, attributes in others.items():
        if dead_letters_of(attributes) == place.name:
            yield "dead_letter", f"must be null: {other} uses this queue for its dead letters"


def _missing(name: str) -> str:
    return f"there is no queue {name}, neither in the file nor in the account"
