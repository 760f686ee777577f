"""Rates of queues, receivers, topics and subscriptions in the last hours, in answers."""

from __future__ import annotations

from typing import Annotated, Literal, Self, TypeAlias

from msgspec import Meta

from cirrusmq.base.limits import RATES_HOURS
from cirrusmq.metering.rate_report import Rates
from cirrusmq_lambda.answers.body import Body, Time

RateKind: TypeAlias = Literal["queue", "receiver", "topic", "subscription"]
_Numbers = Annotated[list[int], Meta(min_length=RATES_HOURS[0], max_length=RATES_HOURS[1])]


class ResourceRates(Body):
    """Messages of each interval, the oldest first; the last one still runs.

    A figure that a kind of resource does not count is 0: a topic counts only `published`, and a
    subscription that hands its messages to a queue, or broadcasts, nothing.
    """

    kind: RateKind
    name: Annotated[str, Meta(description="as the query has it")]
    sent: _Numbers
    received: Annotated[
        _Numbers, Meta(description="receipts: a message that comes again is counted again")
    ]
    deleted: _Numbers
    expired: _Numbers
    dead_lettered: Annotated[_Numbers, Meta(description="moved away from here as dead letters")]
    published: _Numbers
    delivered: Annotated[
        _Numbers, Meta(description="came to a receiver or a group, or were taken by a URL")
    ]
    attempts: Annotated[_Numbers, Meta(description="posts to a URL, also failed posts")]
    dropped: Annotated[_Numbers, Meta(description="given up without a dead-letter queue")]
    rewound: _Numbers
    kept: Annotated[
        _Numbers,
        Meta(description="messages that were stored, in any state, at the end of each interval"),
    ]

    @classmethod
    def of(cls, kind: RateKind, name: str, rates: Rates) -> Self:
        """Returns the answer's part for one resource."""
        happened = {each: list(numbers) for each, numbers in rates.happened.items()}
        return cls(kind=kind, name=name, kept=list(rates.kept), **happened)


class RatesOfLastHour(Body):
    """Counted by the meter: what happened is here a little later, mostly within a minute.

    Twelve intervals of five minutes; with `hours` in the query as many of an hour each.
    """

    starts_at: Annotated[Time, Meta(description="the beginning of the first interval")]
    interval_seconds: int
    rates: Annotated[list[ResourceRates], Meta(description="in the order of the query, by kind")]
