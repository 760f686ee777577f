"""A message as filters see it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec


class Filterable(msgspec.Struct, frozen=True):
    """The parts of a message that filters look at."""

    tags: Sequence[str]
    routing_key: str
    """Empty if the message has none."""
    attributes: Mapping[str, str | bytes]
    body: str | bytes = ""
    """Only filters that `reads_body` look at it."""
