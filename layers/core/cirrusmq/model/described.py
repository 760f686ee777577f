"""What a caller may say of a queue, a topic or a subscription: a description and labels."""

from __future__ import annotations

from typing import Annotated, TypeAlias

from msgspec import Meta

from cirrusmq.base import limits

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
    Meta(max_length=limits.LABELS, description=f"at most {limits.LABELS} pairs of texts"),
]
