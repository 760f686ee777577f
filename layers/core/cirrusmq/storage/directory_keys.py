"""Keys of the items of the Directory table."""

from __future__ import annotations

from typing import NamedTuple

from cirrusmq.runtime.store import shard_key


class ItemKey(NamedTuple):
    """Key of an item of the Directory."""

    pk: str
    sk: str


def account_place(account: str) -> ItemKey:
    """Returns the key of an account's item, which counts its queues."""
    return ItemKey(f"A#{account}", "account")


def key_place(access_key_id: str) -> ItemKey:
    """Returns the key of an access key, as a caller shows it."""
    return ItemKey(f"K#{access_key_id}", "key")


def account_key_place(account: str, access_key_id: str) -> ItemKey:
    """Returns the key of an access key in its account's list."""
    return ItemKey(f"A#{account}", f"key#{access_key_id}")


def queue_place(account: str, name: str) -> ItemKey:
    """Returns the key of a queue; case of the name is ignored."""
    return ItemKey(f"A#{account}", f"queue#{name.lower()}")


def queue_changes_place(account: str) -> ItemKey:
    """Returns the key of the count of changes of the account's queues."""
    return ItemKey(f"A#{account}", "queue_changes")


def queue_users_place(queue_id: str) -> ItemKey:
    """Returns the key of the references to a queue, by use, which forbid its deletion."""
    return ItemKey(f"Q#{queue_id}", "users")


def receiver_place(queue_id: str, name: str) -> ItemKey:
    """Returns the key of a receiver of a queue; case of the name is ignored."""
    return ItemKey(f"Q#{queue_id}", f"receiver#{name.lower()}")


def receivers_count_place(queue_id: str) -> ItemKey:
    """Returns the key of the count of a queue's receivers."""
    return ItemKey(f"Q#{queue_id}", "count")


def grant_place(queue_id: str, account: str) -> ItemKey:
    """Returns the key of a grant, in its queue's list."""
    return ItemKey(f"Q#{queue_id}", f"grant#{account}")


def granted_place(account: str, owner: str, queue_name: str) -> ItemKey:
    """Returns the key of a grant, in the list of the account that has it."""
    return ItemKey(f"G#{account}", f"{owner}#{queue_name}")


def topic_grant_place(topic_id: str, account: str) -> ItemKey:
    """Returns the key of a grant, in its topic's list."""
    return ItemKey(f"T#{topic_id}", f"grant#{account}")


def topic_granted_place(account: str, owner: str, topic_name: str) -> ItemKey:
    """Returns the key of a grant on a topic, in its account's list; no queue has such a name."""
    return ItemKey(f"G#{account}", f"{owner}#topic#{topic_name}")


def topic_place(account: str, name: str) -> ItemKey:
    """Returns the key of a topic; case of the name is ignored."""
    return ItemKey(f"A#{account}", f"topic#{name.lower()}")


def subscription_place(topic_id: str, name: str) -> ItemKey:
    """Returns the key of a subscription of a topic; case of the name is ignored."""
    return ItemKey(f"T#{topic_id}", f"subscription#{name.lower()}")


def subscriptions_count_place(topic_id: str) -> ItemKey:
    """Returns the key of the count of a topic's subscriptions."""
    return ItemKey(f"T#{topic_id}", "count")


def topics_count_place(account: str) -> ItemKey:
    """Returns the key of the count of an account's topics."""
    return ItemKey(f"A#{account}", "topics")


def resource_place(resource_id: str) -> ItemKey:
    """Returns the key of an id's account and name; kept for a while after the resource.

    All of them have one of a few partition keys, so that they can be listed.
    """
    return ItemKey(shard_key(RESOURCES, resource_id), resource_id)


def schedule_place(account: str, name: str) -> ItemKey:
    """Returns the key of a schedule; case of the name is ignored."""
    return ItemKey(f"A#{account}", f"schedule#{name.lower()}")


def schedules_count_place(account: str) -> ItemKey:
    """Returns the key of the count of an account's schedules."""
    return ItemKey(f"A#{account}", "schedules")


def operation_place(account: str, operation_id: str) -> ItemKey:
    """Returns the key of an operation of an account."""
    return ItemKey(f"A#{account}", f"operation#{operation_id}")


def audit_place(account: str, change_id: str) -> ItemKey:
    """Returns the key of a change in an account's audit, under an id that sorts by time."""
    return ItemKey(f"E#{account}", change_id)


RESOURCES = "I"
"""Kind of the partition keys of all resources, for the sweep."""
RUNNING = "running"
"""Partition with a pointer to each running operation, for the sweep."""
ADMIN_KEYS = ItemKey("deployment", "admin_keys")
FORMATS = ItemKey("deployment", "formats")
