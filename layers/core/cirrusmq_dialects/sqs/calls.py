"""The actions, each by one function on the core's operations."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from cirrusmq_dialects.sqs import move_calls, queue_calls, receive_calls, send_calls, settle_calls
from cirrusmq_dialects.sqs.asking import Asked

ACTIONS: dict[str, Callable[[Asked], dict[str, Any]]] = {
    "AddPermission": queue_calls.add_permission,
    "CancelMessageMoveTask": move_calls.cancel_message_move_task,
    "ChangeMessageVisibility": settle_calls.change_message_visibility,
    "ChangeMessageVisibilityBatch": settle_calls.change_message_visibility_batch,
    "CreateQueue": queue_calls.create_queue,
    "DeleteMessage": settle_calls.delete_message,
    "DeleteMessageBatch": settle_calls.delete_message_batch,
    "DeleteQueue": queue_calls.delete_queue,
    "GetQueueAttributes": queue_calls.get_queue_attributes,
    "GetQueueUrl": queue_calls.get_queue_url,
    "ListDeadLetterSourceQueues": queue_calls.list_dead_letter_source_queues,
    "ListMessageMoveTasks": move_calls.list_message_move_tasks,
    "ListQueueTags": queue_calls.list_queue_tags,
    "ListQueues": queue_calls.list_queues,
    "PurgeQueue": queue_calls.purge_queue,
    "ReceiveMessage": receive_calls.receive_message,
    "RemovePermission": queue_calls.remove_permission,
    "SendMessage": send_calls.send_message,
    "SendMessageBatch": send_calls.send_message_batch,
    "SetQueueAttributes": queue_calls.set_queue_attributes,
    "StartMessageMoveTask": move_calls.start_message_move_task,
    "TagQueue": queue_calls.tag_queue,
    "UntagQueue": queue_calls.untag_queue,
}
ATTRIBUTES = frozenset({"CreateQueue", "DeleteQueue", "SetQueueAttributes"})
"""Actions whose refusals are for invalid values of attributes."""
CHANGES = frozenset(
    {
        *("CreateQueue", "DeleteQueue", "PurgeQueue", "SetQueueAttributes"),
        *("TagQueue", "UntagQueue", "StartMessageMoveTask", "CancelMessageMoveTask"),
    }
)
"""They are in the audit, as their native calls are."""
