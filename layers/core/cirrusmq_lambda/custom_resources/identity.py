"""The id under which CloudFormation knows a resource: its place, and the service's own id of it.

    acme/queue/orders/4k2mz8q0w1xv                      made by the request that creates it
    acme/queue/bills/7h9c…/4k2mz8q0w1xv                 its name changed: another queue, and the
                                                        one before, which CloudFormation deletes
                                                        when the stack is updated
    acme/queue/orders/4k2mz8q0w1xv                      the update is rolled back: the first again

The service's id decides whether the thing of that name is the one that was made here. It follows
from the request, so that a request that is made twice finds what it made; the service itself takes
no id a second time, so that a late repetition cannot bring a deleted queue back.
"""

from __future__ import annotations

import hashlib
import random
from typing import Literal, NamedTuple, TypeAlias, get_args

from cirrusmq.base.names import new_id

Kind: TypeAlias = Literal["queue", "topic", "receiver", "subscription", "grant", "topic_grant"]
_KINDS: tuple[Kind, ...] = get_args(Kind)
_NESTED = ("receiver", "subscription", "grant", "topic_grant")
_REMEMBERED = 32
"""Ids that a name keeps of earlier names; CloudFormation takes 1,024 characters."""


class Place(NamedTuple):
    """Where a resource is; `parent` is the queue or topic that it belongs to."""

    account: str
    kind: Kind
    name: str
    parent: str = ""

    def __str__(self) -> str:
        within = f"{self.parent}/" if self.parent else ""
        return f"{self.kind.replace('_', ' ')} {within}{self.name}"


class Identity(NamedTuple):
    """A place, and ids: of the resource, then of those that it was before its name changed."""

    place: Place
    ids: tuple[str, ...]

    def __str__(self) -> str:
        account, kind, name, parent = self.place
        names = (parent, name) if parent else (name,)
        return "/".join((account, kind, *names, *self.ids[:_REMEMBERED]))


def read_identity(text: str) -> Identity | None:
    """The identity in a physical id; None where this is no text of ours."""
    account, kind, *rest = [*text.split("/"), ""]
    for known in _KINDS:
        names = 2 if known in _NESTED else 1
        ids = tuple(rest[names:-1])
        if kind == known and ids:
            parent = rest[0] if names == 2 else ""
            return Identity(Place(account, known, rest[names - 1], parent), ids)
    return None


def id_of_request(stack_id: str, logical_id: str, request_id: str) -> str:
    """The id of what a request makes: the same for the same request, and for no other."""
    told = "\n".join((stack_id, logical_id, request_id)).encode()
    return new_id(random.Random(hashlib.sha256(told).digest()))
