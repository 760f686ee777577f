"""Every kind of item that the core stores, and what becomes of attributes that it does not know.

An older release changes what a newer one stored, during a rollout and after it goes back. `hint`
says why a kind may lose such attributes: it is made whole from what is known, and a release must
work where it is missing. Of all others an attribute, and a member of a document, stays.

Who adds a prefix of a key lists it here: tests of `service/` fail at an item of no kind.
"""

from __future__ import annotations

import re
from typing import Any, NamedTuple

from cirrusmq_local.testing import World


class Kind(NamedTuple):
    """A kind of item: its table, and expressions that its partition and its sort key match."""

    name: str
    table: str
    pk: str
    sk: str = ".*"
    hint: str = ""
    """Why it may lose what is not known; empty: it may not."""
    once: bool = False
    """Whether nothing is written over it: it is put, perhaps again as it was, and deleted."""
    others: bool = False
    """Whether what is put over it later, with another time, is of other messages."""


_ID = r"[^#]+"
_MADE_WHOLE = "made of its parcel, which keeps what is not known, and found by that alone"
KINDS = (
    Kind("account", "directory", f"A#{_ID}", "account"),
    Kind("count of topics", "directory", f"A#{_ID}", "topics"),
    Kind("changes of queues", "directory", f"A#{_ID}", "queue_changes"),
    Kind("key in a list", "directory", f"A#{_ID}", "key#.*"),
    Kind("queue", "directory", f"A#{_ID}", "queue#.*"),
    Kind("topic", "directory", f"A#{_ID}", "topic#.*"),
    Kind("schedule", "directory", f"A#{_ID}", "schedule#.*"),
    Kind("count of schedules", "directory", f"A#{_ID}", "schedules"),
    Kind(
        *("mark of a schedule", "directory", r"D#\d"),
        hint="names a schedule, which has what is known of it; the next one is made of it",
    ),
    Kind("operation", "directory", "A#[^#]*", "operation#.*"),
    Kind(
        *("change", "directory", f"E#{_ID}"),
        hint="put again, as it was, by a repetition of the call that made it",
    ),
    Kind("granted", "directory", f"G#{_ID}", ".*#.*"),
    Kind("resource", "directory", r"I#\d+"),
    Kind("key", "directory", f"K#{_ID}", "key"),
    Kind("users", "directory", f"Q#{_ID}", "users"),
    Kind("count of receivers", "directory", f"Q#{_ID}", "count"),
    Kind("receiver", "directory", f"Q#{_ID}", "receiver#.*"),
    Kind("grant", "directory", f"Q#{_ID}", "grant#.*"),
    Kind("count of subscriptions", "directory", f"T#{_ID}", "count"),
    Kind("subscription", "directory", f"T#{_ID}", "subscription#.*"),
    Kind("topic's grant", "directory", f"T#{_ID}", "grant#.*"),
    Kind("running operation", "directory", "running", once=True),
    Kind("count of admin keys", "directory", "deployment", "admin_keys"),
    Kind("formats", "directory", "deployment", "formats"),
    Kind("parcel", "messages", rf"Q#{_ID}#\d+", others=True),
    Kind("archived parcel", "messages", rf"R#{_ID}#\d+", once=True),
    Kind("log record", "messages", rf"L#{_ID}#\d+", others=True),
    Kind("age of a parcel", "messages", rf"A#{_ID}#\d+", r"\d+#.*", hint=_MADE_WHOLE),
    Kind("walk by age", "messages", rf"A#{_ID}#\d+", "~"),
    Kind(
        *("mark of a head", "messages", rf"H#{_ID}#\d+", "H.*"),
        hint="saves read units, and goes after an hour",
    ),
    Kind(
        *("round of looks", "messages", rf"H#{_ID}#\d+", "W"),
        hint="saves read units: a round that is not known begins anew",
    ),
    Kind(
        *("best levels", "messages", f"H#{_ID}#best", "best"),
        hint="saves read units, and counts for less than a second",
    ),
    Kind(
        *("wake-up", "messages", f"W#{_ID}"),
        hint="a receiver that is not woken looks by itself",
    ),
    Kind("place of a message", "messages", f"M#{_ID}#{_ID}", "[0-9A-F]", hint=_MADE_WHOLE),
    Kind(
        *("message under a key", "messages", f"X#{_ID}#[0-9a-f]{{40}}", "X"),
        hint="made whole with each message under the key, and names a parcel, which has the rest",
    ),
    Kind("end of a request", "messages", r"Y#Msg-[0-9A-Z]+", rf"{_ID}#{_ID}", once=True),
    Kind("reminder", "messages", f"D#{_ID}#[0-9a-f]{{40}}", "D", others=True, once=True),
    Kind(
        *("due mark", "messages", rf"D#{_ID}#\d+"),
        hint="names a message of a parcel, which has what is known of it; put again as it was",
    ),
    Kind(
        *("answer of a URL", "messages", f"D#{_ID}#answers"),
        hint="the newest answer of a status, made whole, and shown for a day alone",
    ),
    Kind(
        *("message that was delivered again", "messages", f"D#{_ID}#again"),
        hint="names a parcel, which has what is known of it, to the trace alone",
    ),
    Kind("sequence", "messages", rf"N#{_ID}#\d+", "N"),
    Kind("slot", "messages", f"F#{_ID}", r"\d{4}"),
    Kind("wake of slots", "messages", f"F#{_ID}", "wake"),
    Kind("parked share", "messages", rf"P#{_ID}#[0-9o]+", once=True),
    Kind("lot of a reader", "messages", r"P#\d+"),
    Kind("half message", "messages", rf"T#{_ID}#\d+", "H#.*"),
    Kind(
        *("mark of a half message", "messages", rf"T#{_ID}#\d+", "[CE]#.*"),
        hint="names a half message, which has what is known of it; put again as it was",
    ),
    Kind(
        *("group of producers", "messages", "T#groups"),
        hint="made of the topic each minute, for the sweep to look there",
    ),
    Kind("delivery state", "messages", r"S#\d+"),
    Kind("usage record", "usage", r"U#\d+", once=True),
    Kind("counter", "usage", r"C#\d+"),
    Kind("day of rates", "usage", f"V#{_ID}", r"\d{5}"),
    Kind("calls of an account", "usage", f"T#{_ID}", r"\d+"),
    Kind("waiting receives", "usage", f"T#{_ID}", "waiting"),
    Kind("subscriptions that became slow", "usage", f"T#{_ID}", "slow"),
    Kind("work in a pool", "usage", r"T#\*(posting|calling)"),
    Kind(
        *("rate of a queue", "usage", f"T#rate#{_ID}(#[0-9a-f]{{24}})?", "send|receive"),
        hint="what is taken of a second: it begins again with each one",
    ),
    Kind("use of a key", "usage", f"T#key#{_ID}", "used"),
    Kind("receive by a key", "usage", f"T#received#{_ID}"),
    Kind("gauges of an hour", "usage", "gauges", "done"),
    Kind("rounds of the sweep", "usage", "sweep", "rounds"),
    Kind(
        *("visits of the sweep", "usage", "sweep", "visits"),
        hint="where the next sweep goes on: one that does not know begins anew",
    ),
)


def check_listed(world: World) -> None:
    """Raise AssertionError if an item of a world is of no kind: one of each partition."""
    for table in world.tables.__struct_fields__:
        for item in {item["pk"]["S"]: item for item in world.items(table)}.values():
            kind_of(table, item)


def kind_of(table: str, item: dict[str, Any]) -> Kind:
    """The kind of an item, by its key; AssertionError where it is of none, or of several."""
    pk, sk = item["pk"]["S"], item["sk"]["S"]
    found = [
        kind
        for kind in KINDS
        if kind.table == table and re.fullmatch(kind.pk, pk) and re.fullmatch(kind.sk, sk, re.S)
    ]
    assert len(found) == 1, f"list {table}: {pk} / {sk} in tests/service/kinds.py: {found}"
    return found[0]
