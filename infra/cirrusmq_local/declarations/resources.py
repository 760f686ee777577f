"""A resource of a file or of an account: its place and its attributes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

Kind: TypeAlias = Literal[
    "queue", "receiver", "grant", "topic", "subscription", "topic_grant", "schedule"
]
GRANTS: tuple[Kind, ...] = ("grant", "topic_grant")
_OF_TOPICS: tuple[Kind, ...] = ("topic", "subscription", "topic_grant")
Attributes: TypeAlias = Mapping[str, Any]
"""All attributes of a resource, as JSON values, in the service's form."""


@dataclass(frozen=True, order=True)
class Place:
    """Key of a resource. `parent`: the queue or topic of a receiver, grant or subscription.

    The name of a grant is the account that gets the permission.
    """

    kind: Kind
    name: str
    parent: str = ""

    def __str__(self) -> str:
        within = f"{self.parent}/" if self.parent else ""
        return f"{self.kind.replace('_', ' ')} {within}{self.name}"

    @property
    def folded(self) -> Place:
        """The place in lower case, equal for places that are one to the service.

        A grant's name is an account, whose case matters.
        """
        name = self.name if self.kind in GRANTS else self.name.lower()
        return Place(self.kind, name, self.parent.lower())

    @property
    def container(self) -> Place | None:
        """The queue or topic of the resource, or None if it is one itself."""
        if not self.parent:
            return None
        return Place("topic" if self.kind in _OF_TOPICS else "queue", self.parent)

    @property
    def queue(self) -> str | None:
        """Name of the queue that it is or belongs to, or None for other resources."""
        return None if self.kind in (*_OF_TOPICS, "schedule") else self.parent or self.name


@dataclass(frozen=True, kw_only=True)
class Declared:
    """A resource of a file. `lines`: the line of each attribute, by its path; "" is its name."""

    attributes: Attributes
    lines: Mapping[str, int]

    def line_of(self, parameter: str | None) -> int:
        """Returns the line of an attribute, or of the nearest element around it."""
        path = parameter or ""
        while path not in self.lines:
            path = path.rpartition(".")[0] if "[" not in path else path.partition("[")[0]
        return self.lines[path]


@dataclass(frozen=True, kw_only=True)
class Found:
    """A resource of an account.

    `automatic`: True if the service made it for a subscription's dead letters. `own_queue`: name
    of the queue that the service makes for this subscription when needed.
    """

    attributes: Attributes
    automatic: bool = False
    own_queue: str | None = None


def dead_letters_of(attributes: Attributes) -> str | None:
    """Returns the dead-letter queue of a resource with these attributes, or None."""
    dead_letter = attributes.get("dead_letter")
    return dead_letter["queue"] if dead_letter else attributes.get("dead_letter_queue")
