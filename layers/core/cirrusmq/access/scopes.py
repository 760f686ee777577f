"""The scope of an access key: what it may do, on which queues and topics."""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias

import msgspec
from msgspec import Meta

from cirrusmq.base.limits import SCOPE_NAMES
from cirrusmq.base.names import parse_queue_ref

Right: TypeAlias = Literal["send", "receive", "manage"]
Kind: TypeAlias = Literal["queues", "topics"]
RIGHTS: tuple[Right, ...] = ("send", "receive", "manage")

_Listed: TypeAlias = Annotated[
    tuple[str, ...],
    Meta(max_length=SCOPE_NAMES, description=f"a list of at most {SCOPE_NAMES} names"),
]


class Listed(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """Queues and topics by name; another account's queue is `account:queue`."""

    queues: _Listed = ()
    topics: _Listed = ()


Resources: TypeAlias = Listed | Literal["all"]


class Scope(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """For each right the queues and topics that a key has it on; `all` of the account, or some."""

    send: Resources = Listed()
    receive: Resources = Listed()
    manage: Resources = Listed()

    def of(self, right: Right) -> Resources:
        """Returns the resources that a right is held on."""
        resources: Resources = getattr(self, right)
        return resources

    def allows(self, right: Right, kind: Kind, ref: str, account: str) -> bool:
        """Returns True if the key has the right on a queue or topic, as its account calls it."""
        resources = self.of(right)
        return resources == "all" or own_name(ref, account) in getattr(resources, kind)


def checked(scope: Scope, account: str) -> Scope:
    """Returns the scope with names as they are compared. Raises InvalidParameter for a bad name."""
    changes: dict[str, Resources] = {}
    for right in RIGHTS:
        resources = scope.of(right)
        if resources in ("all", Listed()):
            continue  # one that is left out stays so
        names: dict[Kind, tuple[str, ...]] = {}
        for kind in ("queues", "topics"):
            parameter = f"scope.{right}.{kind}"
            for ref in getattr(resources, kind):
                parse_queue_ref(ref, account, parameter)
            names[kind] = tuple(own_name(ref, account) for ref in getattr(resources, kind))
        changes[right] = Listed(**names)
    return msgspec.structs.replace(scope, **changes)


def within(inner: Scope | None, outer: Scope | None) -> bool:
    """Returns True if `inner` allows nothing beyond `outer`; a scope that is None allows all."""
    if outer is None or inner is None:
        return outer is None
    return all(_part_of(inner.of(right), outer.of(right)) for right in RIGHTS)


def own_name(ref: str, account: str) -> str:
    """Returns a queue's or topic's name without the account if it is the caller's own."""
    owner, colon, name = ref.rpartition(":")
    return name if colon and owner == account else ref


def _part_of(inner: Resources, outer: Resources) -> bool:
    if isinstance(inner, str) or isinstance(outer, str):
        return outer == "all"
    return set(inner.queues) <= set(outer.queues) and set(inner.topics) <= set(outer.topics)
