"""A plan as a text, and as JSON."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from typing import Any

from cirrusmq_local.declarations.plan import Plan, Step
from cirrusmq_local.declarations.resources import Place

_SIGNS = {"create": "+", "change": "~", "delete": "-"}
_NOT_NAMED = 10
"""Number of shown names of resources that the file does not name."""


def plan_lines(plan: Plan) -> Iterator[str]:
    """Yields the plan as text: a line for each step, and one for each attribute."""
    for step in plan.steps:
        yield step_line(step)
        if step.action != "delete":
            yield from _attribute_lines(step)
    for conflict in plan.conflicts:
        yield f"! {conflict.place}: {conflict.reason}"
    counts = Counter(step.action for step in plan.steps)
    yield (
        f"{counts['create']} to create, {counts['change']} to change, {counts['delete']} to"
        f" delete, {plan.unchanged} as the file says"
    )
    if plan.left:
        shown = ", ".join(map(str, plan.left[:_NOT_NAMED]))
        more = f" and {len(plan.left) - _NOT_NAMED} more" if len(plan.left) > _NOT_NAMED else ""
        yield f"not in the file, left as they are: {shown}{more}"


def step_line(step: Step) -> str:
    """Returns a step as `+ queue orders`."""
    return f"{_SIGNS[step.action]} {step.place}"


def step_json(step: Step) -> dict[str, Any]:
    """Returns a step as JSON, for a program."""
    return {"action": step.action, **place_json(step.place)}


def plan_json(plan: Plan) -> dict[str, Any]:
    """Returns the plan as JSON, for a program."""
    return {
        "steps": [
            {
                "action": step.action,
                **place_json(step.place),
                "before": dict(step.before),
                "after": dict(step.after),
            }
            for step in plan.steps
        ],
        "conflicts": [
            {**place_json(conflict.place), "reason": conflict.reason} for conflict in plan.conflicts
        ],
        "unchanged": plan.unchanged,
        "left": [str(place) for place in plan.left],
    }


def place_json(place: Place) -> dict[str, str]:
    """Returns a resource as JSON, for a program; `of` is its queue or topic."""
    within = {"of": place.parent} if place.parent else {}
    return {"kind": place.kind, "name": place.name, **within}


def _attribute_lines(step: Step) -> Iterator[str]:
    for name, after in step.after.items():
        shown = json.dumps(after, ensure_ascii=False)
        if step.action == "change":
            shown = f"{json.dumps(step.before[name], ensure_ascii=False)} -> {shown}"
        yield f"    {name}: {shown}"
