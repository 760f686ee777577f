"""A resource's physical id in CloudFormation: its place, and the service's id for it.

    acme/queue/orders/4k2mz8q0w1xv                      made by the request that creates it
    acme/queue/bills/7h9c…/4k2mz8q0w1xv                 its name changed: another queue, and the
                                                        one before, which CloudFormation deletes
                                                        when the stack is updated
    acme/queue/orders/4k2mz8q0w1xv                      the update is rolled back: the first again

The service's id shows if this stack made the resource of that name. The id is derived from the
request, so that a repeated request finds its resource. The service accepts no id a second time, so
that a late repetition cannot recreate a deleted queue.
"""

from __future__ import annotations

import hashlib
import random
from typing import Literal, NamedTuple, TypeAlias, get_args

from cirrusmq.base.names import new_id

Kind: TypeAlias = Literal[
    "queue", "topic", "receiver", "subscription", "grant", "topic_grant", "schedule"
]
_KINDS: tuple[Kind, ...] = get_args(Kind)
_NESTED = ("receiver", "subscription", "grant", "topic_grant")
_REMEMBERED = 32
"""Number of earlier ids that are kept; CloudFormation takes 1,024 characters."""


class Place(NamedTuple):
    """Key of a resource. `parent`: the queue or topic to which it belongs, or ""."""

    account: str
    kind: Kind
    name: str
    parent: str = ""

    def __str__(self) -> str:
        within = f"{self.parent}/" if self.parent else ""
        return f"{self.kind.replace('_', ' ')} {within}{self.name}"


class Identity(NamedTuple):
    """A place, and ids: the resource's, then the earlier ones before its name changed."""

    place: Place
    ids: tuple[str, ...]

    def __str__(self) -> str:
        account, kind, name, parent = self.place
        names = (parent, name) if parent else (name,)
        return "/".join((account, kind, *names, *self.ids[:_REMEMBERED]))


def read_identity(text: str) -> Identity | None:
    """Returns the identity in a physical id, or None if the text is not ours."""
    account, kind, *rest = [*text.split("/"), ""]
    for known in _KINDS:
        names = 2 if known in _NESTED else 1
        ids = tuple(rest[names:-1])
        if kind == known and ids:
            parent = rest[0] if names == 2 else ""
            return Identity(Place(account, known, rest[names - 1], parent), ids)
    return None


def id_of_request(stack_id: str, logical_id: str, request_id: str) -> str:
    """Returns the id for a request's resource: equal only for the same request."""
    told = "\n".join((stack_id, logical_id, request_id)).encode()
    return new_id(random.Random(hashlib.sha256(told).digest()))
