"""Does the steps of a plan: one call each, in order; each call may be repeated.

apply      1 done ── 2 done ── 3 fails, or the process ends: reports the done steps
again      a new plan: 1 and 2 are as the file says ── 3 ── 4
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from cirrusmq_client import CirrusMQError, Client
from cirrusmq_local.declarations.account import GONE, count_waiting
from cirrusmq_local.declarations.plan import Step
from cirrusmq_local.plurals import counted


class Stopped(Exception):
    """A step failed; earlier steps are done, this and later ones are not."""

    def __init__(self, step: Step, reason: str, *, uncertain: bool) -> None:
        super().__init__(reason)
        self.step, self.reason, self.uncertain = step, reason, uncertain


def apply_step(client: Client, step: Step, *, force: bool) -> str | None:
    """Does one step. Returns the secret of a new URL's signatures, shown once, or None.

    Raises Stopped. If the answer was lost, the client repeats the call and finds the subscription
    made: then the secret is not known.
    """
    try:
        if step.action == "create":
            return _create(client, step)
        if step.action == "change":
            _change(client, step)
        else:
            _delete(client, step, force)
    except CirrusMQError as error:
        raise Stopped(step, error.detail, uncertain=error.uncertain) from error
    return None


def _create(client: Client, step: Step) -> str | None:
    place = step.place
    body: Any = step.after  # the contract is the service's
    match place.kind:
        case "queue":
            client.create_queue(place.name, body, exact=True)
        case "topic":
            client.create_topic(place.name, body, exact=True)
        case "receiver":
            client.create_receiver(place.parent, place.name, body, exact=True)
        case "grant":
            client.put_grant(place.parent, place.name, body["permission"])
        case "topic_grant":
            client.put_topic_grant(place.parent, place.name, body["permission"])
        case "schedule":
            client.put_schedule(place.name, body)
        case "subscription":
            made = client.create_subscription(place.parent, place.name, body, exact=True)
            return made.get("secret")
    return None


def _change(client: Client, step: Step) -> None:
    place = step.place
    body: Any = step.after
    match place.kind:
        case "queue":
            client.change_queue(place.name, body)
        case "topic":
            client.change_topic(place.name, body)
        case "grant":
            client.put_grant(place.parent, place.name, body["permission"])
        case "topic_grant":
            client.put_topic_grant(place.parent, place.name, body["permission"])
        case "schedule":
            client.put_schedule(place.name, body)
        case "subscription":
            client.change_subscription(place.parent, place.name, body)
        case "receiver":
            raise CirrusMQError("a receiver cannot be changed")


def _delete(client: Client, step: Step, force: bool) -> None:
    place = step.place
    # Messages may have come since the plan was made; a later message is deleted.
    held = 0 if force else count_waiting(client, place)
    if held:
        raise Stopped(step, f"holds {counted(held, 'message')} by now", uncertain=False)
    deletes: dict[str, Callable[[], Any]] = {
        "queue": lambda: client.delete_queue(place.name),
        "topic": lambda: client.delete_topic(place.name),
        "receiver": lambda: client.delete_receiver(place.parent, place.name),
        "grant": lambda: client.delete_grant(place.parent, place.name),
        "topic_grant": lambda: client.delete_topic_grant(place.parent, place.name),
        "subscription": lambda: client.delete_subscription(place.parent, place.name),
        "schedule": lambda: client.delete_schedule(place.name),
    }
    try:
        deletes[place.kind]()
    except GONE:
        return  # somebody else has deleted it
