"""Calls on subscriptions of topics."""

from __future__ import annotations

from typing import Any

from cirrusmq.base.errors import AlreadyExists, QueueNotFound
from cirrusmq.base.shapes import read_values
from cirrusmq.filters.tags import TAGS_PER_FILTER
from cirrusmq.model.topic import Protocol, Subscription, SubscriptionInput, Topic
from cirrusmq.subscriptions.management import (
    change_subscription,
    delete_subscription,
    put_subscription,
)
from cirrusmq.subscriptions.state import read_state
from cirrusmq.subscriptions.subscriptions import find_subscription, list_subscriptions
from cirrusmq_dialects.asking import MANAGE, SHOW
from cirrusmq_dialects.cmq.asking import Asked, Result
from cirrusmq_dialects.cmq.errors import CmqError
from cirrusmq_dialects.cmq.reading import Params, needed, numbered, subscription_name

_PROTOCOLS: dict[str, Protocol] = {"http": "http", "https": "http", "queue": "queue"}
_STRATEGIES = {"BACKOFF_RETRY": "backoff", "EXPONENTIAL_DECAY_RETRY": "exponential_decay"}
_FORMATS = {"JSON": "json", "SIMPLIFIED": "simplified"}
_BINDING_KEYS, _DELIMITERS, _ENDPOINT_CHARACTERS = 5, 15, 500
_ILLEGAL = (4000, 10630, "illegal endpoint")
_EXISTS = (4490, 10470, "subscribtion is already existed")
_OF_QUEUE = (4000, 10640, "notifyContentFormat of protocol queue must be SIMPLIFIED")


def subscribe(asked: Asked) -> Result:
    """Makes a subscription; one of the name that exists is refused, as it is there."""
    params, topic = asked.params, asked.topic(MANAGE)
    name, protocol = subscription_name(params), needed(params, "protocol")
    endpoint = needed(params, "endpoint")
    if protocol not in _PROTOCOLS:
        raise CmqError(4000, 10510, "undefined protocol")
    native = _PROTOCOLS[protocol]
    given = _read(params, topic, native)
    if topic.attributes.filter == "routing_key" and "filter" not in given:
        raise CmqError(4000, 10710, "parameters lack of bindingKey")
    if native == "queue":
        asked.caller.require(("send", "manage"), "queues", endpoint, " (endpoint)")
    else:
        _check_url(endpoint, protocol)
    request = {"protocol": native, "endpoint": endpoint, **given}
    try:
        subscription, created = put_subscription(
            asked.core, topic, name, read_values(request, SubscriptionInput)
        )
    except AlreadyExists as error:
        raise CmqError(*_EXISTS) from error
    except QueueNotFound as error:
        raise CmqError(*_ILLEGAL) from error
    if not created:
        raise CmqError(*_EXISTS)
    return {"subscriptionId": f"subsc-{subscription.id}"}


def set_subscription_attributes(asked: Asked) -> Result:
    """Changes the attributes that are given."""
    topic, before = _found(asked, MANAGE)
    given = _read(asked.params, topic, before.protocol)
    if before.filter is not None and "sql" in before.filter and "filter" in given:
        given["filter"] = {**given["filter"], "sql": before.filter["sql"]}
    change_subscription(asked.core, topic, before.name, read_values(given, SubscriptionInput))
    return {}


def get_subscription_attributes(asked: Asked) -> Result:
    """All attributes, and how many messages wait."""
    topic, found = _found(asked, SHOW)
    counts = read_state(asked.core, found).counts
    policy = found.policy.policy if found.policy else ""
    strategies = {native: name for name, native in _STRATEGIES.items()}
    held = found.filter or {}
    tags: Any = held.get("tags")
    if tags is None:
        tags = [each for each in str(held.get("tag_expression", "")).split("||") if each]
    simple = found.protocol == "queue" or found.content_format == "simplified"
    protocol = _shown_protocol(found)
    return {
        "topicOwner": topic.account,
        "msgCount": counts.active + counts.inactive + counts.delayed if counts else 0,
        "protocol": protocol,
        "protocal": protocol,
        "endpoint": found.endpoint or "",
        "notifyStrategy": strategies.get(policy, "EXPONENTIAL_DECAY_RETRY"),
        "notifyContentFormat": "SIMPLIFIED" if simple else "JSON",
        "createTime": found.created_ms // 1000,
        "lastModifyTime": found.modified_ms // 1000,
        "bindingKey": held.get("binding_keys", []),
        "filterTags": tags,
    }


def list_subscription_by_topic(asked: Asked) -> Result:
    """A topic's subscriptions, by name."""
    entries = [
        {
            "subscriptionId": f"subsc-{each.id}",
            "subscriptionName": each.name,
            "protocol": _shown_protocol(each),
            "endpoint": each.endpoint or "",
        }
        for each in list_subscriptions(asked.core, asked.topic(SHOW))
    ]
    return asked.listed("subscriptionList", "subscriptionName", entries)


def unsubscribe(asked: Asked) -> Result:
    """Deletes a subscription."""
    topic = asked.topic(MANAGE)
    delete_subscription(asked.core, topic, subscription_name(asked.params))
    return {}


def clear_subscription_filter_tags(asked: Asked) -> Result:
    """Lets everything pass; binding keys are no tags, and stay."""
    topic, found = _found(asked, MANAGE)
    if topic.attributes.filter == "tags":
        given = read_values({"filter": None}, SubscriptionInput)
        change_subscription(asked.core, topic, found.name, given)
    return {}


def _found(asked: Asked, rights: Any) -> tuple[Topic, Subscription]:
    topic = asked.topic(rights)
    name = subscription_name(asked.params)
    return topic, find_subscription(asked.core, topic.id, name).value


def _read(params: Params, topic: Topic, protocol: Protocol) -> Result:
    """The attributes that are given, as a request of the core has them."""
    given: Result = {}
    strategy = params.get("notifyStrategy") or None
    if strategy is not None and strategy not in _STRATEGIES:
        raise CmqError(4000, 10520, "undefined notify retry stragety")
    if strategy is not None and protocol == "http":
        given["retry"] = {"policy": _STRATEGIES[strategy]}
    content = params.get("notifyContentFormat") or None
    if content is not None and content not in _FORMATS:
        raise CmqError(4000, 10530, "undefined notify content format")
    if content is not None and protocol == "http":
        given["content_format"] = _FORMATS[content]
    elif content not in (None, "SIMPLIFIED"):
        raise CmqError(*_OF_QUEUE)
    tags, keys = numbered(params, "filterTag"), numbered(params, "bindingKey")
    if len(tags) > TAGS_PER_FILTER:
        raise CmqError(4000, 10670, "too many filterTag")
    if len(keys) > _BINDING_KEYS:
        raise CmqError(4000, 10680, "too many bindingKey")
    if any(key.count(".") > _DELIMITERS for key in keys):
        raise CmqError(4000, 10691, "too many delimeters")
    if topic.attributes.filter == "tags":
        if tags:
            given["filter"] = {"tags": tags}
    elif keys:
        given["filter"] = {"binding_keys": keys}
    return given


def _check_url(endpoint: str, protocol: str) -> None:
    if any(each.isspace() for each in endpoint):
        raise CmqError(4510, 10570, "url connot contain any blank characters")
    schemes = ("https://",) if protocol == "https" else ("http://", "https://")
    if len(endpoint) > _ENDPOINT_CHARACTERS or not endpoint.startswith(schemes):
        raise CmqError(*_ILLEGAL)


def _shown_protocol(subscription: Subscription) -> str:
    """`https` is one of CMQ's protocols; the core's own `pull` is shown as it is."""
    secure = subscription.protocol == "http" and (subscription.endpoint or "").startswith("https:")
    return "https" if secure else subscription.protocol
