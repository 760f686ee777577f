"""The steps from an account's resources to a file's, and the conflicts.

The steps are in this order, since the service checks references at each write:

    queues without dead_letter      they may be the dead-letter queues of others
    queues with it                  if no other resource uses them for its dead letters now
    receivers, grants, topics, subscriptions, grants on topics, schedules
    deletes                         schedules, subscriptions, topics, receivers, grants, queues last
    queues with it, used so now     their users have changed by then

A dead-letter queue has no dead-letter queue itself, so there are no circles.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

from cirrusmq.base.errors import CirrusMQError
from cirrusmq_local.declarations import contract
from cirrusmq_local.declarations.document import BadFile
from cirrusmq_local.declarations.references import check_references
from cirrusmq_local.declarations.resources import (
    Attributes,
    Declared,
    Found,
    Place,
    dead_letters_of,
)
from cirrusmq_local.plurals import counted

Action: TypeAlias = Literal["create", "change", "delete"]
_MAKES = ("receiver", "grant", "topic", "subscription", "topic_grant", "schedule")
_DELETES = ("schedule", "topic_grant", "subscription", "topic", "receiver", "grant", "queue")


@dataclass(frozen=True, kw_only=True)
class Step:
    """One call. `before` and `after`: for a change only the changed attributes, else all."""

    action: Action
    place: Place
    before: Attributes
    after: Attributes


@dataclass(frozen=True, kw_only=True)
class Conflict:
    """A resource that cannot become as the file says. With a conflict no step is done."""

    place: Place
    reason: str


@dataclass(frozen=True, kw_only=True)
class Plan:
    """`unchanged`: number of equal resources. `left`: resources that the file does not name."""

    steps: tuple[Step, ...]
    conflicts: tuple[Conflict, ...]
    unchanged: int
    left: tuple[Place, ...]


def make_plan(
    declared: Mapping[Place, Declared],
    found: Mapping[Place, Found],
    *,
    delete: bool = False,
    force: bool = False,
    waiting: Callable[[Place], int] = lambda place: 0,
) -> Plan:
    """Returns the plan. Raises BadFile if the file names queues that will not exist.

    `delete`: deletes resources that the file does not name; with messages only if `force`.
    `waiting`: returns the number of messages in a resource.
    """
    unnamed = _unnamed(declared, found)
    final = {
        place: each.attributes for place, each in found.items() if not (delete and place in unnamed)
    } | {place: each.attributes for place, each in declared.items()}
    problems = check_references(declared, final)
    if problems:
        raise BadFile(problems)
    steps, conflicts = _compare(declared, found)
    used_up = _whole(unnamed)
    if delete and not force:
        held = {place: waiting(place) for place in used_up}
        conflicts += [
            Conflict(
                place=place, reason=f"holds {counted(count, 'message')}, and is not in the file"
            )
            for place, count in held.items()
            if count
        ]
    steps += [
        Step(action="delete", place=place, before=found[place].attributes, after={})
        for place in used_up
        if delete
    ]
    refused = {conflict.place for conflict in conflicts}
    steps = [step for step in steps if step.place not in refused]
    touched = refused | {step.place for step in steps}
    return Plan(
        steps=tuple(_in_order(steps, found)),
        conflicts=tuple(conflicts),
        unchanged=sum(place not in touched for place in declared),
        left=() if delete else tuple(used_up),
    )


def _compare(
    declared: Mapping[Place, Declared], found: Mapping[Place, Found]
) -> tuple[list[Step], list[Conflict]]:
    """Returns the steps for the file's resources, and the conflicts."""
    steps, conflicts = [], []
    twins = {place.folded: place for place in found}
    for place, each in declared.items():
        twin = twins.get(place.folded)
        if twin is None:
            after = contract.differing(place, each.attributes)
            steps.append(Step(action="create", place=place, before={}, after=after))
        elif twin != place:
            reason = f"the name is taken by {twin}: the service ignores case"
            conflicts.append(Conflict(place=place, reason=reason))
        else:
            try:
                step = _change(place, each, found[place], declared)
            except CirrusMQError as error:
                conflicts.append(Conflict(place=place, reason=error.detail))
            else:
                steps += [step] if step else []
    return steps, conflicts


def _change(
    place: Place, each: Declared, present: Found, declared: Mapping[Place, Declared]
) -> Step | None:
    before = dict(present.attributes)
    if each.attributes.get("dead_letter_queue") == present.own_queue is not None:
        before["dead_letter_queue"] = present.own_queue
    topic = None
    if place.kind == "subscription" and place.container is not None:
        topic = declared[place.container].attributes
    after = contract.changes(place, before, each.attributes, topic)
    if not after:
        return None
    old = {name: before.get(name) for name in after}
    return Step(action="change", place=place, before=old, after=after)


def _in_order(steps: list[Step], found: Mapping[Place, Found]) -> list[Step]:
    used = {dead_letters_of(each.attributes) for each in found.values()}

    def rank(step: Step) -> int:
        place = step.place
        if step.action == "delete":
            last = 1 if place.kind == "queue" and not step.before["dead_letter"] else 0
            return 10 + _DELETES.index(place.kind) + last
        if place.kind != "queue":
            return 2 + _MAKES.index(place.kind)
        if not step.after.get("dead_letter", _kept(step, found)):
            return 0
        return 20 if place.name in used else 1

    return sorted(steps, key=lambda step: (rank(step), step.place))


def _kept(step: Step, found: Mapping[Place, Found]) -> object:
    """Returns the `dead_letter` that a step does not change."""
    present = found.get(step.place)
    return present and present.attributes.get("dead_letter")


def _unnamed(declared: Mapping[Place, Declared], found: Mapping[Place, Found]) -> set[Place]:
    """Returns resources that the file does not name. A subscription's own queue goes with it.

    A file without schedules may be older than them: it says nothing about any.
    """
    folded = {place.folded for place in declared}
    gone = {place for place in found if place.folded not in folded}
    if not any(place.kind == "schedule" for place in declared):
        gone = {place for place in gone if place.kind != "schedule"}
    kept = {each.own_queue for place, each in found.items() if place not in gone}
    return {place for place in gone if place.queue is None or place.queue not in kept}


def _whole(places: set[Place]) -> list[Place]:
    """Returns the resources without those deleted along with their queue or topic."""
    return sorted(place for place in places if place.container not in places)
