"""Options that select dead letters by reason, source and age."""

from __future__ import annotations

from typing import Annotated, Any

import typer

Reason = Annotated[str | None, typer.Option(help="Dead letters with this reason.")]
SourceName = Annotated[
    str | None, typer.Option("--source", help="Dead letters from this queue or topic.")
]
OfReceiver = Annotated[
    str | None, typer.Option("--receiver", help="Dead letters from this receiver.")
]
OfSubscription = Annotated[str | None, typer.Option(help="Dead letters from this subscription.")]
OlderThan = Annotated[
    int | None, typer.Option(help="Dead letters for at least this number of seconds.", min=0)
]
YoungerThan = Annotated[
    int | None, typer.Option(help="Dead letters for less than this number of seconds.", min=0)
]


def chosen(
    reason: str | None,
    source: str | None,
    receiver: str | None,
    subscription: str | None,
    older_than: int | None,
    younger_than: int | None,
) -> dict[str, Any] | None:
    """Return the filter that the options make, or None without any option."""
    given = {
        "reason": reason,
        "source_queue": source,
        "receiver": receiver,
        "subscription": subscription,
        "older_than_seconds": older_than,
        "younger_than_seconds": younger_than,
    }
    return {key: value for key, value in given.items() if value is not None} or None
