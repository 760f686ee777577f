"""The query protocol, of SDKs from before 2023: forms in, XML out; members as in JSON."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from cirrusmq_dialects import forms
from cirrusmq_dialects.calling import Answer, Call
from cirrusmq_dialects.sqs.errors import NO_QUEUE, UNKNOWN_OPERATION, SqsError, no_action
from cirrusmq_dialects.sqs.reading import Members

NAMESPACE = "http://queue.amazonaws.com/doc/2012-11-05/"
_NO_QUEUE = f"{NO_QUEUE.removesuffix('.')} for this wsdl version."
_HEAD = '<?xml version="1.0"?>'


class _Map(NamedTuple):
    """A map in a form: `Attribute.1.Name=…&Attribute.1.Value=…`."""

    member: str
    key: str
    value: str


_LISTS = {
    "ActionName": "Actions",
    "AWSAccountId": "AWSAccountIds",
    "AttributeName": "AttributeNames",
    "MessageAttributeName": "MessageAttributeNames",
    "MessageSystemAttributeName": "MessageSystemAttributeNames",
    "TagKey": "TagKeys",
}
_ENTRIES = frozenset(
    {
        "ChangeMessageVisibilityBatchRequestEntry",
        "DeleteMessageBatchRequestEntry",
        "SendMessageBatchRequestEntry",
    }
)
_EMPTY_LISTS = frozenset({"Entries", *_LISTS.values()})
"""A list without values is written by its member's own name: `AttributeNames=`."""
_MAPS = {
    "Attribute": _Map("Attributes", "Name", "Value"),
    "MessageAttribute": _Map("MessageAttributes", "Name", "Value"),
    "MessageSystemAttribute": _Map("MessageSystemAttributes", "Name", "Value"),
    "Tag": _Map("Tags", "Key", "Value"),
}
_ELEMENTS = {
    "Messages": "Message",
    "QueueUrls": "QueueUrl",
    "queueUrls": "QueueUrl",
    "Results": "ListMessageMoveTasksResultEntry",
    "Failed": "BatchResultErrorEntry",
}
"""Names of the elements of lists, by the member's name."""
PAIRS = {
    "Attributes": ("Attribute", "Name", "Value"),
    "MessageAttributes": ("MessageAttribute", "Name", "Value"),
    "Tags": ("Tag", "Key", "Value"),
}
WITHOUT_RESULT = frozenset(
    {
        *("AddPermission", "ChangeMessageVisibility", "DeleteMessage", "DeleteQueue"),
        *("PurgeQueue", "RemovePermission", "SetQueueAttributes", "TagQueue", "UntagQueue"),
    }
)
_WITHOUT_QUEUE = frozenset(
    {
        *("CreateQueue", "GetQueueUrl", "ListQueues", "CancelMessageMoveTask"),
        *("ListMessageMoveTasks", "StartMessageMoveTask"),
    }
)
_NOT_AT_A_QUEUE = frozenset({"CreateQueue", "ListQueues"})
_ESCAPED = {"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "\r": "&#xD;"}
_ESCAPE = re.compile('[&<>"\r]')
_NO_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def has_action(call: Call) -> bool:
    """Returns True if a call is in this protocol: a GET or a POST with an action."""
    if call.method not in ("GET", "POST"):
        return False
    return any(b"Action=" in text for text in (call.query.encode(), call.body))


def read_call(call: Call) -> tuple[str, Members]:
    """Returns the action of a call, and its members, from the query and from the form.

    A call at the path of a queue that names no queue is about the queue of the path.
    """
    if call.method == "GET" and not call.query:
        raise SqsError(UNKNOWN_OPERATION, "There is nothing here: a call has an Action.")
    parts = [call.query.encode()] if call.method == "GET" else [call.query.encode(), call.body]
    action, members = read(b"&".join(filter(None, parts)))
    if not call.path.strip("/"):
        return action, members
    if action in _NOT_AT_A_QUEUE:
        raise no_action(action)
    if "QueueUrl" not in members and action not in _WITHOUT_QUEUE:
        return action, {**members, "QueueUrl": call.path}
    return action, members


def read(form: bytes) -> tuple[str, Members]:
    """The action of a form, and its members as the JSON protocol has them."""
    try:
        found = forms.read(form)
    except forms.FormError as error:
        raise SqsError("InvalidParameterValue", str(error)) from error
    # The others are parts of the signature.
    tree = {name: held for name, held in found.items() if not name.startswith("X-Amz-")}
    action = tree.pop("Action", None)
    if not isinstance(action, str) or not action:
        raise SqsError("MissingAction", "The request must contain the parameter Action.")
    members = _members(tree)
    if action == "CreateQueue" and "Tags" in members:
        members["tags"] = members.pop("Tags")
    return action, members


def _members(tree: Mapping[str, Any]) -> dict[str, Any]:
    members: dict[str, Any] = {}
    for name, held in tree.items():
        if name in _LISTS:
            members[_LISTS[name]] = list(_listed(held))
        elif name in _ENTRIES:
            members["Entries"] = [_members(each) for each in _structures(held)]
        elif name in _MAPS:
            members[_MAPS[name].member] = _mapped(held, _MAPS[name])
        elif name in _EMPTY_LISTS and held == "":
            members.setdefault(name, [])
        else:
            members[name] = held
    return members


def _listed(held: Any) -> Iterator[Any]:
    """The values of `Name.1`, `Name.2` …, or of `Name.member.1` …, by their numbers."""
    if not isinstance(held, dict):
        yield held
        return
    numbered = held.get("member", held)
    if not isinstance(numbered, dict):
        yield numbered
        return
    yield from (numbered[number] for number in sorted(numbered, key=_number))


def _number(text: str) -> tuple[int, str]:
    return (int(text) if text.isascii() and text.isdigit() and len(text) < 8 else 0), text


def _structures(held: Any) -> list[dict[str, Any]]:
    found = list(_listed(held))
    if not all(isinstance(each, dict) for each in found):
        raise SqsError("InvalidParameterValue", "The entries of a batch must be structures.")
    return found


def _mapped(held: Any, shape: _Map) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for each in _structures(held):
        name = each.get(shape.key)
        if not isinstance(name, str):
            raise SqsError("MissingParameter", f"A {shape.key} is missing in {shape.member}.")
        found[name] = each.get(shape.value, "")
    return found


def write(action: str, result: Mapping[str, Any], request_id: str) -> Answer:
    """Returns the answer of a call."""
    content = ""
    if action not in WITHOUT_RESULT:
        content = _element(f"{action}Result", "".join(_written(action, result)))
    told = f"<ResponseMetadata><RequestId>{request_id}</RequestId></ResponseMetadata>"
    text = f'{_HEAD}<{action}Response xmlns="{NAMESPACE}">{content}{told}</{action}Response>'
    return Answer(200, _headers(request_id), text.encode())


def write_error(error: SqsError, request_id: str) -> Answer:
    """Returns the answer of a refused call."""
    fault = "Sender" if error.is_senders else "Receiver"
    told = (
        f"<Error><Type>{fault}</Type><Code>{error.query_code}</Code>"
        f"<Message>{_text(message_of(error))}</Message><Detail/></Error>"
        f"<RequestId>{request_id}</RequestId>"
    )
    text = f'{_HEAD}<ErrorResponse xmlns="{NAMESPACE}">{told}</ErrorResponse>'
    if error.shape == UNKNOWN_OPERATION:
        text = f"<{error.query_code}/>"
    return Answer(error.status, _headers(request_id), text.encode())


def message_of(error: SqsError) -> str:
    """Returns the words of a refusal as this protocol has them."""
    return _NO_QUEUE if error.message == NO_QUEUE else error.message


def _written(action: str, members: Mapping[str, Any]) -> Iterator[str]:
    for name, held in members.items():
        match held:
            case dict() if name in PAIRS:
                yield from _pairs(action, held, *PAIRS[name])
            case dict():
                yield _element(name, "".join(_written(action, held)))
            case list():
                element = f"{action}ResultEntry" if name == "Successful" else _ELEMENTS[name]
                yield from _each(action, held, element)
            case bool():
                yield _element(name, str(held).lower())
            case _:
                yield _element(name, _text(str(held)))


def _each(action: str, listed: Iterable[Any], element: str) -> Iterator[str]:
    for each in listed:
        inner = "".join(_written(action, each)) if isinstance(each, dict) else _text(str(each))
        yield _element(element, inner)


def _pairs(
    action: str, held: Mapping[str, Any], element: str, key: str, value: str
) -> Iterator[str]:
    for name, each in held.items():
        inner = "".join(_written(action, each)) if isinstance(each, dict) else _text(each)
        yield _element(element, _element(key, _text(name)) + _element(value, inner))


def _element(name: str, inner: str) -> str:
    return f"<{name}>{inner}</{name}>" if inner else f"<{name}/>"


def _text(value: str) -> str:
    """A text in XML; a character that XML cannot carry, of a native sender, is U+FFFD."""
    return _ESCAPE.sub(lambda found: _ESCAPED[found[0]], _NO_XML.sub("\ufffd", value))


def _headers(request_id: str) -> dict[str, str]:
    return {"Content-Type": "text/xml", "x-amzn-RequestId": request_id}
