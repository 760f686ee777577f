"""Options that choose dead letters by the notes of their sources."""

from __future__ import annotations

from typing import Annotated, Any

import typer

Reason = Annotated[str | None, typer.Option(help="Dead letters of this reason.")]
SourceName = Annotated[
    str | None, typer.Option("--source", help="Dead letters of this queue, or topic.")
]
OfReceiver = Annotated[
    str | None, typer.Option("--receiver", help="Dead letters of this receiver.")
]
OfSubscription = Annotated[str | None, typer.Option(help="Dead letters of this subscription.")]
OlderThan = Annotated[int | None, typer.Option(help="Dead for so many seconds.", min=0)]
YoungerThan = Annotated[int | None, typer.Option(help="Dead for fewer seconds.", min=0)]


def chosen(
    reason: str | None,
    source: str | None,
    receiver: str | None,
    subscription: str | None,
    older_than: int | None,
    younger_than: int | None,
) -> dict[str, Any] | None:
    """The filter of dead letters that the options make; None without any."""
    given = {
        "reason": reason,
        "source_queue": source,
        "receiver": receiver,
        "subscription": subscription,
        "older_than_seconds": older_than,
        "younger_than_seconds": younger_than,
    }
    return {key: value for key, value in given.items() if value is not None} or None
