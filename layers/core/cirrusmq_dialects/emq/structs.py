"""The structs of EMQ's contract, as a table of fields: number, name, type."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, ClassVar

from thrift.protocol.TBase import TBase
from thrift.Thrift import TType

_FIELDS = """
Nothing:
Error: 1 errorCode i32, 2 errMsg text, 3 details text, 4 requestId text
Version: 1 major i32, 2 minor i32, 3 revision i32, 4 date text, 5 details text
Throughput: 1 readQps i64, 2 writeQps i64
QueueQuota: 2 throughput Throughput
RedrivePolicy: 1 dlqName text, 2 maxReceiveTime i32
QueueAttribute: 1 delaySeconds i32, 2 invisibilitySeconds i32, 3 receiveMessageWaitSeconds i32,
    4 receiveMessageMaximumNumber i32, 5 messageRetentionSeconds i32, 6 messageMaximumBytes i32,
    7 partitionNumber i32, 8 userAttributes {text}
QueueState: 1 createTimestamp i64, 2 lastModifiedTimestamp i64, 3 approximateMessageNumber i64,
    4 approximateAvailableMessageNumber i64, 5 approximateInvisibilityMessageNumber i64
MessageAttribute: 1 type text, 2 stringValue text, 3 binaryValue bytes
CreateQueue: 1 queueName text, 2 queueAttribute QueueAttribute, 3 queueQuota QueueQuota,
    4 deadLetterQueue bool, 5 enablePriority bool, 6 topicQueue bool, 7 deleteMessageForce bool,
    8 defaultTagName text, 9 redrivePolicy RedrivePolicy
QueueInfo: 1 queueName text, 2 queueAttribute QueueAttribute, 3 queueState QueueState,
    4 queueQuota QueueQuota, 5 isDeadLetterQueue bool, 6 redrivePolicy RedrivePolicy,
    7 enablePriority bool, 8 topicQueue bool, 9 deleteMessageForce bool, 10 defaultTagName text,
    11 sourceQueues [text]
OfQueue: 1 queueName text
OfTag: 1 queueName text, 2 tagName text
QueueAttributes: 1 queueName text, 2 queueAttribute QueueAttribute
QueueQuotas: 1 queueName text, 2 queueQuota QueueQuota
QueueRedrive: 1 queueName text, 2 redrivePolicy RedrivePolicy
DeadLetterSources: 1 dlqName text, 2 sourceQueues [text]
ListQueue: 1 queueNamePrefix text
Queues: 1 queueName [text]
Permitted: 1 queueName text, 2 developerId text, 3 permission i32
Permission: 1 permission i32
Permissions: 1 permissionList {i32}
CreateTag: 1 queueName text, 2 tagName text, 3 startTimestamp i64, 4 readQPSQuota i64,
    5 attributeName text, 6 attributeValue MessageAttribute, 7 userAttributes {text}
TagInfo: 1 queueName text, 2 tagName text, 3 tagState QueueState, 4 startTimestamp i64,
    5 readQPSQuota i64, 6 attributeName text, 7 attributeValue MessageAttribute,
    8 userAttributes {text}
Tags: 1 queueName text, 2 tagName [text]
SendMessage: 1 queueName text, 2 messageBody text, 3 delaySeconds i32, 4 invisibilitySeconds i32,
    5 messageAttributes {MessageAttribute}, 6 topic text, 7 priority i32
SendEntry: 1 entryId text, 2 messageBody text, 3 delaySeconds i32, 4 invisibilitySeconds i32,
    5 messageAttributes {MessageAttribute}, 6 priority i32
SendBatch: 1 queueName text, 2 entries [SendEntry], 3 topic text
Sent: 1 messageID text, 2 bodyLength i32, 3 bodyMd5 text, 4 sendTimestamp i64
SentEntry: 1 entryId text, 2 messageID text, 3 bodyLength i32, 4 bodyMd5 text, 5 sendTimestamp i64
Failed: 1 id text, 2 reason Error
SentBatch: 1 successful [SentEntry], 2 failed [Failed]
ReceiveMessage: 1 queueName text, 2 maxReceiveMessageNumber i32, 3 maxReceiveMessageWaitSeconds i32,
    4 attributeName text, 5 attributeValue MessageAttribute, 6 tagName text
Received: 1 messageID text, 2 receiptHandle text, 3 messageBody text, 4 attributes {text},
    5 messageAttributes {MessageAttribute}
OfHandle: 1 queueName text, 2 receiptHandle text, 3 invisibilitySeconds i32
HandleEntry: 1 receiptHandle text, 2 invisibilitySeconds i32
OfHandles: 1 queueName text, 2 entries [HandleEntry]
Settled: 1 successful [text], 2 failed [Failed]
UserQuota: 1 throughput Throughput, 2 queueNumber i64
OfDeveloper: 1 developerId text
QuotaOfDeveloper: 1 developerId text, 2 userQuota UserQuota
"""
"""`[type]` is a list, `{type}` a map by texts; a struct stands above the structs that have it."""
_TYPES = {"bool": TType.BOOL, "i32": TType.I32, "i64": TType.I64, "text": TType.STRING}
of: Any = SimpleNamespace()
"""The structs, by their names."""


class Struct(TBase):  # type: ignore[misc]
    """A struct: a field that is not given is None, and is not written."""

    __slots__ = ("__dict__",)
    thrift_spec: ClassVar[Any] = ()

    def __init__(self, **values: Any) -> None:
        for field in filter(None, self.thrift_spec):
            setattr(self, field[2], values.pop(field[2], None))
        assert not values, values


def struct(name: str, fields: str) -> type[Struct]:
    """Makes a struct of the text of its fields."""
    words = [each.split() for each in fields.split(",") if each.strip()]
    spec: list[Any] = [None] * (1 + max([int(number) for number, *_ in words], default=-1))
    for number, field, kind in words:
        wire, detail = _type(kind)
        spec[int(number)] = (int(number), wire, field, detail, None)
    return type(name, (Struct,), {"thrift_spec": tuple(spec)})


def result_of(kind: str) -> type[Struct]:
    """Makes the struct of the result of a method; `kind`: the type of its value, or none."""
    return struct("Result", f"0 success {kind}, 1 e Error" if kind else "1 e Error")


def _type(kind: str) -> tuple[int, Any]:
    """Returns a type as Thrift has it on the wire, and what its reader needs besides."""
    if kind == "bytes":
        return TType.STRING, "BINARY"
    if kind in _TYPES:
        return _TYPES[kind], None
    if kind[0] in "[{":
        inner = (*_type(kind[1:-1]), False)
        return (TType.LIST, inner) if kind[0] == "[" else (TType.MAP, (TType.STRING, None, *inner))
    made = getattr(of, kind)
    return TType.STRUCT, (made, made.thrift_spec)


for _line in _FIELDS.replace(",\n", ",").strip().splitlines():
    _name, _, _fields = _line.partition(":")
    setattr(of, _name, struct(_name, _fields))
