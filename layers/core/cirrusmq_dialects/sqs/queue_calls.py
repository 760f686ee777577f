"""Calls on queues."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from typing import Any, TypeAlias

from msgspec.structs import replace

from cirrusmq.access.permissions import authorize
from cirrusmq.base.errors import (
    CirrusMQError,
    Forbidden,
    InUse,
    InvalidParameter,
    QueueNotFound,
)
from cirrusmq.base.names import FIFO
from cirrusmq.base.shapes import read_values
from cirrusmq.model.queue import Queue, QueueInput, change_attributes
from cirrusmq.model.source import queue_source
from cirrusmq.operations.purge import purge
from cirrusmq.queues.counts import count
from cirrusmq.queues.queues import (
    create_queue as make_queue,
)
from cirrusmq.queues.queues import (
    dead_letter_sources,
    update_queue,
)
from cirrusmq.queues.queues import (
    find_queue as find_document,
)
from cirrusmq.queues.queues import (
    list_queues as page_of_queues,
)
from cirrusmq.queues.receiver_management import delete_queue as remove_queue
from cirrusmq.storage import counters, cursors
from cirrusmq_dialects.asking import MANAGE, SHOW
from cirrusmq_dialects.sqs import attributes as shapes
from cirrusmq_dialects.sqs.asking import Asked
from cirrusmq_dialects.sqs.errors import SqsError, invalid, missing, reason_of
from cirrusmq_dialects.sqs.names import (
    check_type,
    checked_name,
    native_prefix,
    queue_url,
    ref,
    shown_name,
)
from cirrusmq_dialects.sqs.reading import integer, needed_text, pairs, text, texts

Result: TypeAlias = dict[str, Any]
_PAGE = (1, 1_000)


def create_queue(asked: Asked) -> Result:
    """Makes a queue, or finds it if every given attribute has the same value there."""
    core, account = asked.core, asked.caller.account
    name, given = needed_text(asked.members, "QueueName"), pairs(asked.members, "Attributes")
    native, fifo = asked.resolved(checked_name(name)), name.endswith(FIFO)
    asked.caller.require(MANAGE, "queues", native)
    if fifo != (given.get("FifoQueue", "").lower() == "true"):
        raise SqsError(
            "InvalidParameterValue",
            "The name of a FIFO queue can only include alphanumeric characters, hyphens, or"
            f" underscores, must end with {FIFO} suffix and be 1 to 80 in length, and its FifoQueue"
            " is true.",
        )
    tags = pairs(asked.members, "tags")
    shapes.check_tags(tags)
    place = shapes.Place(account=account, name=native, fifo=fifo, resolve=asked.resolved)
    changes = shapes.read_attributes(given, place)
    _check_target(asked, place, given, changes.native)
    queue = _find(asked, native)
    if queue is None:
        labels = tags | changes.native.get("labels", {})
        shapes.check_tag_count(labels)
        largest = {"max_message_bytes": shapes.default_bytes(core.settings.batch_bytes)}
        partitions = shapes.partitions(core.settings.sqs_partitions, labels, fifo=fifo)
        fields = {**shapes.DEFAULTS, **largest, **partitions, **changes.native, "ordered": fifo}
        read = read_values({**fields, "labels": labels}, QueueInput)
        try:
            made = make_queue(core, account, native, read, sdk=changes.sdk)
        except (QueueNotFound, InvalidParameter) as error:
            raise _of_target(error, given) from error
        queue, created = made
        if created:
            counters.note_use(core, queue.id)
            return {"QueueUrl": queue_url(asked.call.base_url, queue)}
    _check_same(queue, place, given, changes)
    return {"QueueUrl": queue_url(asked.call.base_url, queue)}


def get_queue_url(asked: Asked) -> Result:
    """The URL of a queue."""
    name = needed_text(asked.members, "QueueName")
    owner = text(asked.members, "QueueOwnerAWSAccountId")
    queue = asked.find_named(asked.resolved(ref(name, owner, asked.caller.account)), SHOW)
    check_type(name, queue)
    return {"QueueUrl": queue_url(asked.call.base_url, queue)}


def list_queues(asked: Asked) -> Result:
    """URLs of the caller's queues, by name."""
    core, caller = asked.core, asked.caller
    if caller.scope is not None and caller.scope.manage != "all":
        raise Forbidden("the access key's scope lacks manage on all queues and topics")
    maximum = integer(asked.members, "MaxResults", _PAGE)
    token = text(asked.members, "NextToken")
    if token and maximum is None:
        raise missing("MaxResults")
    prefix = text(asked.members, "QueueNamePrefix") or ""
    limit = maximum or _PAGE[1]
    found, more = page_of_queues(core, caller.account, native_prefix(prefix), limit, token or None)
    urls = [
        queue_url(asked.call.base_url, queue)
        for queue in found
        if shown_name(queue).startswith(prefix)
    ]
    return _page("QueueUrls", urls, more if maximum else None)


def get_queue_attributes(asked: Asked) -> Result:
    """Those attributes of a queue that are asked for."""
    names = shapes.check_names(texts(asked.members, "AttributeNames"))
    queue = asked.find(SHOW, "info")
    counted = None
    if shapes.asks_for_counts(names):
        counted = count(asked.core, queue_source(queue, asked.core.now_ms()))
    shown = shapes.show(queue, asked.region, counted)
    found = {name: shown[name] for name in names if name in shown}
    return {"Attributes": found} if found else {}


def set_queue_attributes(asked: Asked) -> Result:
    """Changes some attributes; the others stay."""
    core, given = asked.core, pairs(asked.members, "Attributes")
    if not given:
        raise missing("Attributes")
    queue = asked.find(MANAGE)

    def changed(before: Queue) -> Queue:
        place = shapes.Place(
            account=before.account,
            name=before.name,
            fifo=before.attributes.ordered,
            before=before,
            resolve=asked.resolved,
        )
        changes = shapes.read_attributes(given, place)
        _check_target(asked, place, given, changes.native)
        shapes.check_tag_count(changes.native.get("labels", {}))
        read = read_values(changes.native, QueueInput)
        core.settings.check_message_bytes(read.max_message_bytes)
        return replace(change_attributes(before, read, core.now_ms()), sdk=changes.sdk)

    changed(queue)  # errors of the request come before errors of the target
    try:
        update_queue(core, queue.account, queue.name, changed)
    except QueueNotFound as error:
        if "RedrivePolicy" not in given or _find(asked, asked.queue_ref()) is None:
            raise
        raise _of_target(error, given) from error
    except InvalidParameter as error:
        raise _of_target(error, given) from error
    return {}


def delete_queue(asked: Asked) -> Result:
    """Deletes a queue and its messages, and its subscriptions that SNS's calls made."""
    named = asked.queue_ref()
    asked.caller.require(MANAGE, "queues", named)
    if needed_text(asked.members, "QueueUrl").endswith(FIFO):
        asked.find(MANAGE)  # a queue of the other type is another queue
    account, name = authorize(asked.core, asked.caller, named, "own")
    try:
        remove_queue(asked.core, account, name)
    except InUse:
        # Few queues are subscribed when they are deleted: the others load nothing of topics.
        from cirrusmq_dialects.sqs.subscribed_queues import end_subscriptions

        end_subscriptions(asked.core, account, name)
        remove_queue(asked.core, account, name)
    return {}


def purge_queue(asked: Asked) -> Result:
    """Removes everything sent before."""
    purge(asked.core, asked.find(MANAGE), asked.caller.key_id)
    return {}


def list_queue_tags(asked: Asked) -> Result:
    """The tags of a queue."""
    found = shapes.tags(asked.find(SHOW, "info"))
    return {"Tags": found} if found else {}


def tag_queue(asked: Asked) -> Result:
    """Adds tags, and replaces tags of the same keys."""
    given = pairs(asked.members, "Tags")
    if not given:
        raise missing("Tags")
    shapes.check_tags(given)
    _relabel(asked, lambda labels: {**labels, **given})
    return {}


def untag_queue(asked: Asked) -> Result:
    """Removes tags."""
    keys = texts(asked.members, "TagKeys")
    if not keys:
        raise missing("TagKeys")
    shapes.check_tags(dict.fromkeys(keys, ""))
    _relabel(asked, lambda labels: {name: labels[name] for name in labels if name not in keys})
    return {}


def list_dead_letter_source_queues(asked: Asked) -> Result:
    """URLs of the queues whose dead letters this one takes."""
    maximum = integer(asked.members, "MaxResults", _PAGE)
    token = text(asked.members, "NextToken")
    queue = asked.find(SHOW, "info")
    listing = ("dead_letter_sources", queue.id)
    after = cursors.read(asked.core, token or None, *listing) or ""
    sources = [each for each in dead_letter_sources(asked.core, queue) if each.name > after]
    page = sources[: maximum or _PAGE[1]]
    more = cursors.make(asked.core, page[-1].name, *listing) if len(page) < len(sources) else None
    urls = [queue_url(asked.call.base_url, each) for each in page]
    # In the SDKs' model a program may count on the list, also on an empty one.
    return {"queueUrls": urls, **_page("queueUrls", urls, more if maximum else None)}


def add_permission(asked: Asked) -> Result:
    """Refused: permissions are grants to accounts, which the native calls make."""
    asked.find(MANAGE)
    needed_text(asked.members, "Label")
    for name in ("AWSAccountIds", "Actions"):
        if not texts(asked.members, name):
            raise missing(name)
    raise _is_a_grant()


def remove_permission(asked: Asked) -> Result:
    """Refused, as `add_permission`."""
    asked.find(MANAGE)
    needed_text(asked.members, "Label")
    raise _is_a_grant()


def _find(asked: Asked, named: str) -> Queue | None:
    try:
        return asked.find_named(named, SHOW)
    except QueueNotFound:
        return None


def _check_target(
    asked: Asked, place: shapes.Place, given: Mapping[str, str], native: Mapping[str, Any]
) -> None:
    """Messages come to a dead-letter queue: `send` or `manage` on it is needed.

    It must be a FIFO queue if its source is one, and only then; a missing one is refused later.
    """
    dead_letter = native.get("dead_letter")
    if not dead_letter:
        return
    named = dead_letter["queue"]
    asked.caller.require(("send", "manage"), "queues", named, " (RedrivePolicy)")
    with contextlib.suppress(QueueNotFound):
        target = find_document(asked.core, place.account, named).value
        if target.attributes.ordered != place.fifo:
            raise invalid(
                "RedrivePolicy",
                given["RedrivePolicy"],
                "Dead-letter queue must be same type of queue as the source.",
            )


def _check_same(
    queue: Queue, place: shapes.Place, given: Mapping[str, str], changes: shapes.Changes
) -> None:
    """QueueNameExists if the queue that exists is of the other type, or an attribute differs."""
    name = shapes.difference(queue, given, changes)
    if queue.attributes.ordered != place.fifo:
        name = "FifoQueue"
    if name is not None:
        raise SqsError(
            "QueueNameExists",
            f"A queue already exists with the same name and a different value for attribute {name}",
        )


def _relabel(asked: Asked, change: Any) -> None:
    queue, core = asked.find(MANAGE), asked.core

    def relabelled(before: Queue) -> Queue:
        labels = change(before.attributes.labels)
        shapes.check_tag_count(labels)
        return change_attributes(before, read_values({"labels": labels}, QueueInput), core.now_ms())

    update_queue(core, queue.account, queue.name, relabelled)


def _is_a_grant() -> SqsError:
    return SqsError(
        "UnsupportedOperation", "Permissions are grants: PUT /queues/{queue}/grants/{account}."
    )


def _of_target(error: CirrusMQError, given: Mapping[str, str]) -> Exception:
    """The refusal of a RedrivePolicy for its dead-letter queue; other errors as they are."""
    if isinstance(error, QueueNotFound):
        reason = "Dead letter target does not exist."
    elif isinstance(error, InvalidParameter) and (error.parameter or "").startswith("dead_letter"):
        reason = reason_of(error)
    else:
        return error
    return invalid("RedrivePolicy", given.get("RedrivePolicy", ""), reason)


def _page(name: str, listed: list[str], more: str | None) -> Result:
    found: Result = {name: listed} if listed else {}
    return {**found, "NextToken": more} if more else found
