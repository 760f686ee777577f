"""The items of the three tables, as PynamoDB models. Attribute names are short: they are paid for.

Modules are named below `cirrusmq`, where an item's shape is its mechanism's own.

| table | pk | sk | item |
| --- | --- | --- | --- |
| Directory | `A#<account>` … | kind and name | `DirectoryItem`: accounts, keys, queues, grants … |
| Directory | `E#<account>` | ULID | `DirectoryItem`: a change in the account's audit |
| Messages | `Q#<source id>#<partition>` | `<available at>#<parcel id>` | `ParcelItem` |
| Messages | `Q#…` of a fair queue | `<hash of group>#<available at>#<parcel id>` | `ParcelItem` |
| Messages | `Q#…` with priorities | `<32 - priority>#<available at>#<parcel id>` | `ParcelItem` |
| Messages | `R#<source id>#<partition>` | `<sent at>#<sort key>` | `ParcelItem`, archived |
| Messages | `L#<queue id>#<partition>` | `<send time>#<record id>` | `LogItem`, also of topics |
| Messages | `L#<topic id>#<partition>` | `<send time>#<send id>` | `m`: is under that id, or |
| | | | `a`: shown here again, is under that id |
| Messages | `A#<source id>#<partition>` | `<sent + max age>#<sort key>` | a re-keyed parcel's age |
| Messages | `H#<source id>#<partition>` | `H` | the mark of a partition's head |
| Messages | `H#<source id>#<partition>` | `H#<hash of group>` | the mark of a fair queue's group |
| Messages | `H#<source id>#best` | `best` | best levels by partition: `receiving.best_levels` |
| Messages | `W#<queue id>` | `<time>#<partition>#…` | a wake-up: `queues.wake_ups.items` |
| Messages | `M#<source id>#<send id>` | number in the send | `storage.locations` |
| Messages | `D#<queue id>#<hash>` | `D` | `DeduplicationItem` |
| Messages | `X#<queue id>#<hash>` | `X` | `sending.replacing.items` |
| Messages | `Y#<message id>` | `<account>#<queue id>` | `receiving.replies.items` |
| Messages | `N#<queue id>#<partition>` | `N` | a sequence's counter |
| Messages | `F#<source id>` | number of a slot, or `wake` | `invoking.slots` |
| Messages | `P#…` | | shares that fan-out parked: `fanout.parked_items` |
| Messages | `T#<topic id>#<partition>` | `H#…`, `C#…`, `E#…` | half messages and their marks: |
| Messages | `T#groups` | | their producers' groups: `publishing.half_messages.items` |
| Usage | `U#<shard>` | first event's id | usage records and counters |
"""

from __future__ import annotations

from pynamodb.attributes import (
    BinaryAttribute,
    BooleanAttribute,
    ListAttribute,
    NumberAttribute,
    UnicodeAttribute,
    UnicodeSetAttribute,
)
from pynamodb.models import Model


class DirectoryItem(Model):
    """A resource's document, and the few attributes that conditions look at."""

    pk = UnicodeAttribute(hash_key=True)
    sk = UnicodeAttribute(range_key=True)
    version = NumberAttribute(null=True)
    document = UnicodeAttribute(null=True)
    """The resource's value as JSON."""
    dead_letter_id = UnicodeAttribute(null=True)
    """The id of a queue's dead-letter queue."""
    dead_letters_of = UnicodeSetAttribute(null=True)
    """Ids of the queues and subscriptions that have it as dead-letter queue: it has none itself."""
    endpoint_of = UnicodeSetAttribute(null=True)
    """Ids of the subscriptions that deliver to a queue, which is not deleted while it has any."""
    counter = NumberAttribute(attr_name="count", null=True)
    expires_at = NumberAttribute(null=True)


class ParcelItem(Model):
    """A parcel: the field names of `Parcel` beside the letters stored."""

    pk = UnicodeAttribute(hash_key=True)
    sk = UnicodeAttribute(range_key=True)
    visible_ms = ListAttribute(of=NumberAttribute, attr_name="v")
    nonces = ListAttribute(of=BinaryAttribute, attr_name="k")
    receives = ListAttribute(of=NumberAttribute, attr_name="r")
    first_received_ms = ListAttribute(of=NumberAttribute, attr_name="f")
    sizes = ListAttribute(of=NumberAttribute, attr_name="z")
    waits_ms = ListAttribute(of=NumberAttribute, attr_name="w", null=True)
    sent_ms = NumberAttribute(attr_name="t")
    expires_ms = NumberAttribute(attr_name="x")
    answer_percent = NumberAttribute(attr_name="j")
    positions = BinaryAttribute(legacy_encoding=False, attr_name="p", null=True)
    visibility_seconds = BinaryAttribute(legacy_encoding=False, attr_name="o", null=True)
    content = BinaryAttribute(legacy_encoding=False, attr_name="b", null=True)
    log = UnicodeAttribute(attr_name="l", null=True)
    object_days = NumberAttribute(attr_name="y", null=True)
    """Class of life of the object with the messages, in its key; absent without an object."""
    own_group = BooleanAttribute(attr_name="u", null=True)
    parcel_id = UnicodeAttribute(attr_name="i", null=True)
    """In ordered sources, whose sort keys do not have it."""
    moved_from = UnicodeAttribute(attr_name="m", null=True)
    moved_ms = NumberAttribute(attr_name="n", null=True)
    dead_letter = BinaryAttribute(legacy_encoding=False, attr_name="d", null=True)
    fanned_out = BooleanAttribute(attr_name="s", null=True)
    invokes = UnicodeAttribute(attr_name="c", null=True)
    """`1` in a source that hands messages to a function: the stream's filter looks for it."""
    expires_at = NumberAttribute()


class LogItem(Model):
    """The messages of one send, as they were sent, or without their bodies.

    Never changed.
    """

    pk = UnicodeAttribute(hash_key=True)
    sk = UnicodeAttribute(range_key=True)
    content = BinaryAttribute(legacy_encoding=False, attr_name="b", null=True)
    envelopes = BinaryAttribute(legacy_encoding=False, attr_name="e", null=True)
    """Messages in an object, without their bodies, by their numbers in their send."""
    object_days = NumberAttribute(attr_name="y", null=True)
    """That object's class of life."""
    sent_ms = NumberAttribute(attr_name="t")
    expires_ms = NumberAttribute(attr_name="x")
    topic_header = BinaryAttribute(legacy_encoding=False, attr_name="g", null=True)
    """For a topic: which subscriptions get which of the messages."""
    purged_ms = NumberAttribute(attr_name="q", null=True)
    """Time of a purge just before the send, whose earlier try may have been purged."""
    header = BinaryAttribute(legacy_encoding=False, attr_name="h", null=True)
    """The header that `fan_out` makes the receivers' parcels with."""
    positions = BinaryAttribute(legacy_encoding=False, attr_name="p", null=True)
    """Each number, in their send, of the messages in `content`; absent: 0, 1, 2 …"""
    expires_at = NumberAttribute()


class DeduplicationItem(Model):
    """The message of a deduplication id, until `expires_ms`."""

    pk = UnicodeAttribute(hash_key=True)
    sk = UnicodeAttribute(range_key=True)
    message_id = UnicodeAttribute(attr_name="i")
    body_md5 = UnicodeAttribute(attr_name="h")
    sent_ms = NumberAttribute(attr_name="t")
    expires_ms = NumberAttribute(attr_name="x")
    order = NumberAttribute(attr_name="o", null=True)
    expires_at = NumberAttribute()
