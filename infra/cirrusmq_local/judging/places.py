"""Places to receive from: a queue, a receiver of a queue, a pull subscription."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from cirrusmq.base.timestamps import parse_time
from cirrusmq_local.judging.history import Call

NEVER_MS = 1 << 60
"""A time that does not come: a record of a function does not say when its message expires."""


@dataclass(frozen=True, slots=True)
class Place:
    """`queue`, `queue/receiver`, or `topic/subscription` if `topic` is true."""

    name: str
    topic: bool = False

    @property
    def holder(self) -> str:
        """The queue or topic."""
        return self.name.partition("/")[0]

    @property
    def receiver(self) -> str:
        """The receiver's name; empty if it is none."""
        return "" if self.topic else self.name.partition("/")[2]

    def route(self, call: str) -> tuple[str, dict[str, str]]:
        """Route key and path parameters of a call on the place's messages."""
        if self.topic:
            names = {"topic": self.holder, "subscription": self.name.partition("/")[2]}
            return f"POST /topics/{{topic}}/subscriptions/{{subscription}}/messages/{call}", names
        return f"POST /queues/{{queue}}/messages/{call}", {"queue": self.holder}


@dataclass(slots=True, eq=False)
class Delivery:
    """A message as a receive answered it."""

    call: Call
    id: str
    label: str
    """The beginning of its body: which message of which step of which actor it is."""
    group: str | None
    receipt: str
    count: int
    sent_ms: int
    expires_ms: int
    visible_ms: int
    dead: dict[str, Any] | None
    """The source of a dead letter."""
    priority: int
    """Its priority, as the answer says; 1 if it has none."""
    color: str | None
    """The value of its attribute `color`."""
    sender: str
    """The account that sent it, as the answer says."""
    asks: bool = False
    """True if its sender waits for a reply."""
    skew_ms: int = 0
    """The skew of the clock of the environment that claimed it."""

    @property
    def true_claim_ms(self) -> int:
        """When it was claimed, by the true time."""
        return self.claim_ms - self.skew_ms

    @property
    def claim_ms(self) -> int:
        """The time of the claim, by its environment's clock; the latest possible, if its expiry
        cut the lease short."""
        if self.visible_ms >= self.expires_ms:
            return self.call.ended_ms + self.call.skew_ms
        return self.visible_ms - 1_000 * int(self.call.given["timeout"])

    def __str__(self) -> str:
        until = self.visible_ms - self.call.begun_ms
        return f"{self.label} #{self.count} {self.receipt[-8:]} held {until} ms"


def read_deliveries(call: Call, answer: Any) -> list[Delivery] | None:
    """Returns the messages in a receive's answer, or None if it has an error beside its deletes."""
    call.seen_all, call.after = answer.get("seen_all", False), answer.get("after")
    if "delete" in call.given:
        fates: dict[str, int | str] = dict.fromkeys(answer["deleted"], 0)
        fates |= {each["receipt"]: each["code"] for each in answer["failed"]}
        call.deleted = [fates[delivery.receipt] for delivery in call.given["delete"]]
        if "error" in answer:
            return None
    return [
        Delivery(
            call=call,
            id=each["id"],
            label=each["body"].split(" ")[0],
            group=each.get("group"),
            receipt=each["receipt"],
            count=each["receive_count"],
            sent_ms=parse_time("sent_at", each["sent_at"]),
            expires_ms=parse_time("expires_at", each["expires_at"]),
            visible_ms=parse_time("visible_at", each["visible_at"]),
            dead=_dead_letter(each.get("dead_letter")),
            priority=each.get("priority", 1),
            color=each["attributes"].get("color"),
            sender=each["sender"],
            asks="reply_by" in each,
            skew_ms=call.skew_ms,
        )
        for each in answer["messages"]
    ]


def _dead_letter(shown: dict[str, Any] | None) -> dict[str, Any] | None:
    return shown and {**shown, "dead_at": parse_time("dead_at", shown["dead_at"])}


def handed(call: Call, record: Mapping[str, Any]) -> Delivery:
    """Returns the message of a function's record, held from the beginning of its call on."""
    system = record["attributes"]
    return Delivery(
        call=call,
        id=record["messageId"],
        label=record["body"].split(" ")[0],
        group=system.get("MessageGroupId"),
        receipt=record["receiptHandle"],
        count=int(system["ApproximateReceiveCount"]),
        sent_ms=int(system["SentTimestamp"]),
        expires_ms=NEVER_MS,
        visible_ms=call.begun_ms,
        dead=None,
        priority=1,
        color=None,
        sender=system["SenderId"],
    )
