"""The actions, each by a function of a module here that is loaded when it is called.

A program that publishes alone loads nothing of how topics and subscriptions are made.
"""

from __future__ import annotations

from collections.abc import Callable

from cirrusmq_dialects import calling
from cirrusmq_dialects.sns.asking import Asked, Result
from cirrusmq_dialects.sns.errors import SnsError, invalid

ACTIONS = {
    "ConfirmSubscription": "subscription_calls.confirm_subscription",
    "CreateTopic": "topic_calls.create_topic",
    "DeleteTopic": "topic_calls.delete_topic",
    "GetSubscriptionAttributes": "subscription_calls.get_subscription_attributes",
    "GetTopicAttributes": "topic_calls.get_topic_attributes",
    "ListSubscriptions": "subscription_calls.list_subscriptions",
    "ListSubscriptionsByTopic": "subscription_calls.list_subscriptions_by_topic",
    "ListTagsForResource": "tag_calls.list_tags_for_resource",
    "ListTopics": "topic_calls.list_topics",
    "Publish": "publish_calls.publish",
    "PublishBatch": "publish_calls.publish_batch",
    "SetSubscriptionAttributes": "subscription_calls.set_subscription_attributes",
    "SetTopicAttributes": "topic_calls.set_topic_attributes",
    "Subscribe": "subscription_calls.subscribe",
    "TagResource": "tag_calls.tag_resource",
    "Unsubscribe": "subscription_calls.unsubscribe",
    "UntagResource": "tag_calls.untag_resource",
}
CHANGES = frozenset(
    {
        *("ConfirmSubscription", "CreateTopic", "DeleteTopic", "SetSubscriptionAttributes"),
        *("SetTopicAttributes", "Subscribe", "TagResource", "Unsubscribe", "UntagResource"),
    }
)
"""They are in the audit, as their native calls are."""
_GRANTS = "permissions are grants: PUT /topics/{topic}/grants/{account}."
_SMS, _PUSH = "there is no SMS here.", "there is no mobile push here."
_PROTECTION = "there is no data protection of messages here."
REFUSED = {
    **dict.fromkeys(("AddPermission", "RemovePermission"), _GRANTS),
    **dict.fromkeys(("GetDataProtectionPolicy", "PutDataProtectionPolicy"), _PROTECTION),
    **dict.fromkeys(
        (
            *("CheckIfPhoneNumberIsOptedOut", "CreateSMSSandboxPhoneNumber", "GetSMSAttributes"),
            *("DeleteSMSSandboxPhoneNumber", "GetSMSSandboxAccountStatus", "SetSMSAttributes"),
            *("ListOriginationNumbers", "ListPhoneNumbersOptedOut", "ListSMSSandboxPhoneNumbers"),
            *("OptInPhoneNumber", "VerifySMSSandboxPhoneNumber"),
        ),
        _SMS,
    ),
    **dict.fromkeys(
        (
            *("CreatePlatformApplication", "CreatePlatformEndpoint", "DeleteEndpoint"),
            *("DeletePlatformApplication", "GetEndpointAttributes", "ListPlatformApplications"),
            *("GetPlatformApplicationAttributes", "ListEndpointsByPlatformApplication"),
            *("SetEndpointAttributes", "SetPlatformApplicationAttributes"),
        ),
        _PUSH,
    ),
}
"""Actions of SNS that have no place here, and why."""


def check(action: str) -> None:
    """Refuses an action that is not here: InvalidAction, or InvalidParameter if SNS has it."""
    if action in REFUSED:
        raise invalid(f"{action} Reason: {REFUSED[action]}")
    if action not in ACTIONS:
        told = f"Could not find operation {action[:80]} for version 2010-03-31"
        raise SnsError("InvalidAction", told)


def function_of(action: str) -> Callable[[Asked], Result]:
    """The function of an action that is known."""
    found: Callable[[Asked], Result] = calling.function_of("sns", ACTIONS[action])
    return found
