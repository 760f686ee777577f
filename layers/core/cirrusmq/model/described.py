"""A caller's values over the kept ones, and its own words: a description and labels."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, TypeAlias, TypeVar

import msgspec
from msgspec import UNSET, Meta

from cirrusmq.base import limits
from cirrusmq.base.errors import InvalidParameter

S = TypeVar("S", bound=msgspec.Struct)

Description: TypeAlias = Annotated[
    str,
    Meta(
        max_length=limits.DESCRIPTION_CHARACTERS,
        description=f"a text of at most {limits.DESCRIPTION_CHARACTERS} characters",
    ),
]
_Label: TypeAlias = Annotated[
    str,
    Meta(
        max_length=limits.LABEL_CHARACTERS,
        description=f"a text of at most {limits.LABEL_CHARACTERS} characters",
    ),
]
Labels: TypeAlias = Annotated[
    dict[_Label, _Label],
    Meta(
        max_length=limits.LABELS,
        description=(
            f"at most {limits.LABELS} pairs of texts, of {limits.LABELS_BYTES:,} bytes together"
        ),
    ),
]


def check_labels(labels: Mapping[str, str]) -> None:
    """Raises InvalidParameter if the labels have too many bytes."""
    size = sum(len(text.encode()) for pair in labels.items() for text in pair)
    if size > limits.LABELS_BYTES:
        limit = f"{limits.LABELS_BYTES:,}"
        raise InvalidParameter("labels", f"must have at most {limit} bytes together, not {size:,}")


def with_given(held: S, given: msgspec.Struct) -> S:
    """Returns a struct with the values that a caller gave in their places, not checked together."""
    changes = chosen_values(given)
    check_labels(changes.get("labels", {}))
    return msgspec.structs.replace(held, **changes)


def chosen_values(given: msgspec.Struct) -> dict[str, Any]:
    """Returns the values that a caller gave, by their names; for an input, the value it chooses."""
    values = {name: getattr(given, name) for name in given.__struct_fields__}
    return {
        name: value.chosen() if hasattr(value, "chosen") else value
        for name, value in values.items()
        if value is not UNSET
    }
