"""Keys of the items of the Directory table."""

from __future__ import annotations

from typing import NamedTuple

from cirrusmq.storage.shards import shard_key


class Place(NamedTuple):
    """Key of an item of the Directory."""

    pk: str
    sk: str


def account_place(account: str) -> Place:
    """The account: how many queues it has."""
    return Place(f"A#{account}", "account")


def key_place(access_key_id: str) -> Place:
    """An access key, as a caller shows it."""
    return Place(f"K#{access_key_id}", "key")


def account_key_place(account: str, access_key_id: str) -> Place:
    """An access key in its account's list."""
    return Place(f"A#{account}", f"key#{access_key_id}")


def queue_place(account: str, name: str) -> Place:
    """A queue; case of the name is ignored."""
    return Place(f"A#{account}", f"queue#{name.lower()}")


def queue_changes_place(account: str) -> Place:
    """How often queues of the account have changed."""
    return Place(f"A#{account}", "queue_changes")


def queue_users_place(queue_id: str) -> Place:
    """The references to a queue, by use; while there are any it cannot be deleted."""
    return Place(f"Q#{queue_id}", "users")


def receiver_place(queue_id: str, name: str) -> Place:
    """A receiver of a queue; case of the name is ignored."""
    return Place(f"Q#{queue_id}", f"receiver#{name.lower()}")


def receivers_count_place(queue_id: str) -> Place:
    """How many receivers a queue has."""
    return Place(f"Q#{queue_id}", "count")


def grant_place(queue_id: str, account: str) -> Place:
    """A grant, in its queue's list."""
    return Place(f"Q#{queue_id}", f"grant#{account}")


def granted_place(account: str, owner: str, queue_name: str) -> Place:
    """A grant, in the list of the account that has it."""
    return Place(f"G#{account}", f"{owner}#{queue_name}")


def topic_grant_place(topic_id: str, account: str) -> Place:
    """A grant, in its topic's list."""
    return Place(f"T#{topic_id}", f"grant#{account}")


def topic_granted_place(account: str, owner: str, topic_name: str) -> Place:
    """A grant on a topic, in the list of the account that has it; no queue has such a name."""
    return Place(f"G#{account}", f"{owner}#topic#{topic_name}")


def topic_place(account: str, name: str) -> Place:
    """A topic; case of the name is ignored."""
    return Place(f"A#{account}", f"topic#{name.lower()}")


def subscription_place(topic_id: str, name: str) -> Place:
    """A subscription of a topic; case of the name is ignored."""
    return Place(f"T#{topic_id}", f"subscription#{name.lower()}")


def subscriptions_count_place(topic_id: str) -> Place:
    """How many subscriptions a topic has."""
    return Place(f"T#{topic_id}", "count")


def topics_count_place(account: str) -> Place:
    """How many topics an account has."""
    return Place(f"A#{account}", "topics")


def resource_place(resource_id: str) -> Place:
    """The account and name of a resource's id; kept for a while after the resource.

    All of them have one of a few partition keys, so that they can be listed.
    """
    return Place(shard_key(RESOURCES, resource_id), resource_id)


def operation_place(account: str, operation_id: str) -> Place:
    """An operation of an account."""
    return Place(f"A#{account}", f"operation#{operation_id}")


def audit_place(account: str, change_id: str) -> Place:
    """A change in an account's audit, under an id that sorts by time."""
    return Place(f"E#{account}", change_id)


RESOURCES = "I"
"""Kind of the partition keys of all resources, for the sweep."""
RUNNING = "running"
"""Partition with a pointer to each running operation, for the sweep."""
ADMIN_KEYS = Place("deployment", "admin_keys")
