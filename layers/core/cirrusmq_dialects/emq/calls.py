"""The methods of the three services; a function's module is loaded when it is called."""

from __future__ import annotations

from typing import NamedTuple

_ALL = """
getServiceVersion Nothing Version account_calls.get_service_version
validClientVersion Version - account_calls.valid_client_version
"""
_REFUSED = """
queryMetric setUserQuota setUserInfo getUserInfo addQueueAlertPolicy deleteQueueAlertPolicy
listQueueAlertPolicies setQueueDailyStatisticsState getQueueDailyStatisticsState
"""
_SERVICES = {
    "queue": """
createQueue CreateQueue CreateQueue queue_calls.create_queue audit
deleteQueue OfQueue - queue_calls.delete_queue audit
purgeQueue OfQueue - queue_calls.purge_queue audit
setQueueAttribute QueueAttributes QueueAttributes queue_calls.set_part audit
setQueueQuota QueueQuotas QueueQuotas queue_calls.set_part audit
getQueueInfo OfQueue QueueInfo queue_calls.get_queue_info
listQueue ListQueue Queues queue_calls.list_queue
setQueueRedrivePolicy QueueRedrive QueueRedrive queue_calls.set_part audit
removeQueueRedrivePolicy OfQueue - queue_calls.remove_queue_redrive_policy audit
listDeadLetterSourceQueues DeadLetterSources DeadLetterSources queue_calls.list_sources
setPermission Permitted - account_calls.set_permission audit
revokePermission Permitted - account_calls.revoke_permission audit
queryPermission OfQueue Permission account_calls.query_permission
queryPermissionForId Permitted Permission account_calls.query_permission_for_id
listPermissions OfQueue Permissions account_calls.list_permissions
createTag CreateTag CreateTag tag_calls.create_tag audit
deleteTag OfTag - tag_calls.delete_tag audit
getTagInfo OfTag TagInfo tag_calls.get_tag_info
listTag OfQueue Tags tag_calls.list_tag
""",
    "message": """
sendMessage SendMessage Sent message_calls.send_message
sendMessageBatch SendBatch SentBatch message_calls.send_message_batch
receiveMessage ReceiveMessage [Received] message_calls.receive_message
changeMessageVisibilitySeconds OfHandle - message_calls.hide
changeMessageVisibilitySecondsBatch OfHandles Settled message_calls.hide
deleteMessage OfHandle - message_calls.delete
deleteMessageBatch OfHandles Settled message_calls.delete
deadMessage OfHandle - message_calls.dead
deadMessageBatch OfHandles Settled message_calls.dead
""",
    "statistics": """
getUserQuota OfDeveloper QuotaOfDeveloper account_calls.get_user_quota
getUserUsedQuota OfDeveloper QuotaOfDeveloper account_calls.get_user_used_quota
""",
}
"""Each with its argument, its result, its function, and `audit` if its native call is there."""


class Method(NamedTuple):
    """A method: the struct of its argument, the type of its result, its function."""

    argument: str
    result: str
    function: str
    changes: bool


def method_of(service: str, name: str) -> Method | None:
    """Returns the method of a service that has this name, or None."""
    if name in _REFUSED.split():
        return Method("Nothing", "", "account_calls.refuse", changes=False)
    for line in (_ALL + _SERVICES[service]).split("\n"):
        own, *words = line.split() or [""]
        if own == name and words:
            argument, result, function, *audit = words
            return Method(argument, result.strip("-"), function, bool(audit))
    return None
