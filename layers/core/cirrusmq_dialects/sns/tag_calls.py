"""Tags of topics, which are their labels."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from cirrusmq.base.limits import LABELS
from cirrusmq.base.shapes import read_values
from cirrusmq.model.described import with_given
from cirrusmq.model.topic import Topic, TopicInput
from cirrusmq.subscriptions.topics import update_topic
from cirrusmq_dialects.asking import MANAGE, SHOW
from cirrusmq_dialects.sns.asking import Asked, Result
from cirrusmq_dialects.sns.errors import SnsError, invalid
from cirrusmq_dialects.sns.reading import Members, listed, needed, structures, text


def read_tags(members: Members) -> dict[str, str]:
    """The tags that are given."""
    found: dict[str, str] = {}
    for each in structures(members, "Tags"):
        key = needed(each, "Key")
        if key in found:
            raise invalid("Duplicated keys are not allowed.")
        found[key] = text(each, "Value") or ""
    return found


def list_tags_for_resource(asked: Asked) -> Result:
    """The tags of a topic."""
    topic = asked.topic(SHOW, "info", parameter="ResourceArn")
    held = topic.attributes.labels
    return {"Tags": [{"Key": key, "Value": value} for key, value in held.items()]}


def tag_resource(asked: Asked) -> Result:
    """Adds tags, and replaces tags of the same keys."""
    given = read_tags(asked.members)
    if not given:
        raise invalid("Tags Reason: one at least is needed.")
    _relabel(asked, lambda labels: {**labels, **given})
    return {}


def untag_resource(asked: Asked) -> Result:
    """Removes tags."""
    keys = set(map(str, listed(asked.members, "TagKeys")))
    if not keys:
        raise invalid("TagKeys Reason: one at least is needed.")
    _relabel(asked, lambda labels: {key: labels[key] for key in labels if key not in keys})
    return {}


def _relabel(asked: Asked, change: Callable[[dict[str, str]], dict[str, str]]) -> None:
    found = asked.reach(MANAGE, "ResourceArn")
    found.require("admin")

    def update(before: Topic) -> Topic:
        labels = change(before.attributes.labels)
        if len(labels) > LABELS:
            raise SnsError("TagLimitExceeded", f"A topic has at most {LABELS} tags.")
        given = read_values({"labels": labels}, TopicInput)
        return msgspec.structs.replace(before, attributes=with_given(before.attributes, given))

    update_topic(asked.core, found.account, found.name, update)
