"""A resource that a file declares or an account has: its place, and its attributes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

Kind: TypeAlias = Literal["queue", "receiver", "grant", "topic", "subscription", "topic_grant"]
GRANTS: tuple[Kind, ...] = ("grant", "topic_grant")
_OF_TOPICS: tuple[Kind, ...] = ("topic", "subscription", "topic_grant")
Attributes: TypeAlias = Mapping[str, Any]
"""All attributes of a resource, as JSON values, in the form that the service keeps."""


@dataclass(frozen=True, order=True)
class Place:
    """Where a resource is: `parent` is the queue or topic of a receiver, grant or subscription.

    The name of a grant is the account that it is for.
    """

    kind: Kind
    name: str
    parent: str = ""

    def __str__(self) -> str:
        within = f"{self.parent}/" if self.parent else ""
        return f"{self.kind.replace('_', ' ')} {within}{self.name}"

    @property
    def folded(self) -> Place:
        """The same for all places that the service takes for one: names ignore their case.

        Accounts do not, of which a grant is for one.
        """
        name = self.name if self.kind in GRANTS else self.name.lower()
        return Place(self.kind, name, self.parent.lower())

    @property
    def container(self) -> Place | None:
        """The queue or topic that it belongs to."""
        if not self.parent:
            return None
        return Place("topic" if self.kind in _OF_TOPICS else "queue", self.parent)

    @property
    def queue(self) -> str | None:
        """The queue that it is, or is of; None for a topic and what belongs to one."""
        return None if self.kind in _OF_TOPICS else self.parent or self.name


@dataclass(frozen=True, kw_only=True)
class Declared:
    """A resource of a file. `lines`: the line of each attribute, by its path; "" is its name."""

    attributes: Attributes
    lines: Mapping[str, int]

    def line_of(self, parameter: str | None) -> int:
        """The line of an attribute, or of the nearest thing around it."""
        path = parameter or ""
        while path not in self.lines:
            path = path.rpartition(".")[0] if "[" not in path else path.partition("[")[0]
        return self.lines[path]


@dataclass(frozen=True, kw_only=True)
class Found:
    """A resource of an account.

    `automatic`: the service made it, for a subscription's dead letters; `own_queue`: the name of
    the queue that the service makes for this subscription, if it has to.
    """

    attributes: Attributes
    automatic: bool = False
    own_queue: str | None = None


def dead_letters_of(attributes: Attributes) -> str | None:
    """The queue that gets the dead letters of a resource with these attributes."""
    dead_letter = attributes.get("dead_letter")
    return dead_letter["queue"] if dead_letter else attributes.get("dead_letter_queue")


def messages_text(count: int) -> str:
    """`1 message`, `2 messages`."""
    return f"{count:,} message{'s' * (count != 1)}"
