"""A caller's words about a queue, a topic or a subscription: a description and labels."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, TypeAlias

from msgspec import Meta

from cirrusmq.base import limits
from cirrusmq.base.errors import InvalidParameter

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
