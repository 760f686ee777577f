"""The actions, each by a function of a module here that is loaded when it is called.

A program that has queues alone loads nothing of topics.
"""

from __future__ import annotations

from collections.abc import Callable

from cirrusmq_dialects import calling
from cirrusmq_dialects.cmq.asking import Asked, Result

ACTIONS = {
    "BatchDeleteMessage": "message_calls.batch_delete_message",
    "BatchPublishMessage": "publish_calls.batch_publish_message",
    "BatchReceiveMessage": "message_calls.batch_receive_message",
    "BatchSendMessage": "message_calls.batch_send_message",
    "ClearSubscriptionFilterTags": "subscription_calls.clear_subscription_filter_tags",
    "CreateQueue": "queue_calls.create_queue",
    "CreateTopic": "topic_calls.create_topic",
    "DeleteMessage": "message_calls.delete_message",
    "DeleteQueue": "queue_calls.delete_queue",
    "DeleteTopic": "topic_calls.delete_topic",
    "GetQueueAttributes": "queue_calls.get_queue_attributes",
    "GetSubscriptionAttributes": "subscription_calls.get_subscription_attributes",
    "GetTopicAttributes": "topic_calls.get_topic_attributes",
    "ListQueue": "queue_calls.list_queue",
    "ListSubscriptionByTopic": "subscription_calls.list_subscription_by_topic",
    "ListTopic": "topic_calls.list_topic",
    "PublishMessage": "publish_calls.publish_message",
    "ReceiveMessage": "message_calls.receive_message",
    "RewindQueue": "queue_calls.rewind_queue",
    "SendMessage": "message_calls.send_message",
    "SetQueueAttributes": "queue_calls.set_queue_attributes",
    "SetSubscriptionAttributes": "subscription_calls.set_subscription_attributes",
    "SetTopicAttributes": "topic_calls.set_topic_attributes",
    "Subscribe": "subscription_calls.subscribe",
    "Unsubscribe": "subscription_calls.unsubscribe",
}
CHANGES = frozenset(
    {
        *("ClearSubscriptionFilterTags", "CreateQueue", "CreateTopic", "DeleteQueue"),
        *("DeleteTopic", "RewindQueue", "SetQueueAttributes", "SetSubscriptionAttributes"),
        *("SetTopicAttributes", "Subscribe", "Unsubscribe"),
    }
)
"""They are in the audit, as their native calls are."""


def function_of(action: str) -> Callable[[Asked], Result]:
    """The function of an action that is known."""
    found: Callable[[Asked], Result] = calling.function_of("cmq", ACTIONS[action])
    return found
