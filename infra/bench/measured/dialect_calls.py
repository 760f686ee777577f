"""The life of messages by an SDK's calls, signed before the clock starts, and by native calls.

All calls go to the deployed handlers of one world. A life returns the CPU seconds of each call.
"""

from __future__ import annotations

import re
import time
from collections.abc import Mapping, Sequence
from email.utils import formatdate
from itertools import count as counting
from typing import Any, Protocol
from urllib.parse import urlencode

import msgspec
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials
from msgspec.structs import replace

from cirrusmq.access import keys
from cirrusmq.wiring import bootstrap
from cirrusmq_dialects.aliyun import signature as of_rocketmq
from cirrusmq_dialects.cmq import signature as of_cmq
from cirrusmq_dialects.signing import sign
from cirrusmq_local.cloud.functions import load_handler
from cirrusmq_local.cloud.template import ALL_DIALECTS, API, DIALECT_API, TEMPLATE, load
from cirrusmq_local.testing.world import World

from ..counted import bodies
from .calls import Context

_FUNCTIONS = ("send", "receive", "delete", "publish", "dialects")
_ACCOUNT, _HOST, _SIZE = "alice", "127.0.0.1:8081", 1_024
_QUEUE, _TOPIC, _GROUP = "jobs", "news", "GID_jobs"

Life = dict[str, float]


class Lives(Protocol):
    """Messages that are sent, received and deleted."""

    def life(self, count: int) -> Life:
        """Returns CPU seconds of each call in the life of `count` messages."""
        ...


class Functions:
    """A world with a queue, a topic and a signing key; calls its functions as Lambda does."""

    def __init__(self) -> None:
        self.world = world = World(by_sdk=True)
        # Signatures use the machine's time.
        world.core = replace(world.core, real_seconds=lambda: int(time.time()))
        rights = keys.KeyRights(manages_keys=False)
        key, self.secret = keys.create_key(world.core, _ACCOUNT, rights, signing=True)
        self.key_id = key.id
        client = world.client(_ACCOUNT)
        self.authorization = client.authorization
        client.put(f"/queues/{_QUEUE}", {"partitions": 1})
        client.put(f"/topics/{_TOPIC}", {"partitions": 1})
        loaded = load(TEMPLATE, {"Dialects": ALL_DIALECTS}).functions
        functions = {each.folder.name: each for each in loaded}
        self._handlers = {name: load_handler(functions[name]) for name in _FUNCTIONS}

    def native(self, function: str, path: str, body: Any) -> tuple[float, Any]:
        """Returns CPU seconds and answer of a native call."""
        headers = {"authorization": self.authorization, "content-type": "application/json"}
        content = msgspec.json.encode(body)
        took, answer = self.timed(function, "POST", path, content, headers)
        return took, msgspec.json.decode(answer)

    def timed(
        self,
        function: str,
        method: str,
        path: str,
        body: bytes,
        headers: Mapping[str, str],
        query: str = "",
    ) -> tuple[float, str]:
        """Returns CPU seconds and answer of a call, which must succeed."""
        api = DIALECT_API if function == "dialects" else API
        _, event, _ = self.world.event(method, path, body, dict(headers), query, api=api)
        with bootstrap.serving(self.world.core):
            began = time.process_time()
            answer = self._handlers[function](event, Context())
            took = time.process_time() - began
        assert answer["statusCode"] < 300, answer["body"]
        return took, answer.get("body") or "{}"

    def later(self) -> None:
        """Moves the clock by a millisecond: within one, messages are in the order of random ids."""
        self.world.clock.pass_seconds(0.001)


class Native:
    """Messages of a queue, sent together."""

    def __init__(self, functions: Functions) -> None:
        self._functions = functions

    def life(self, count: int) -> Life:
        """Returns CPU seconds of send, receive and delete."""
        messages = [bodies.text(_SIZE) for _ in range(count)]
        path = f"/queues/{_QUEUE}/messages"
        sent, _ = self._functions.native("send", path, {"messages": messages})
        self._functions.later()
        return {"send": sent, **native_take(self._functions, _QUEUE, count)}


def native_take(functions: Functions, queue: str, count: int) -> Life:
    """Returns CPU seconds of a receive and a delete of `count` waiting messages."""
    path = f"/queues/{queue}/messages"
    asked = {"max": count, "wait_seconds": 0}
    receive, received = functions.native("receive", f"{path}/receive", asked)
    receipts = [each["receipt"] for each in received["messages"]]
    assert len(receipts) == count
    delete, _ = functions.native("delete", f"{path}/delete", {"receipts": receipts})
    return {"receive": receive, "delete": delete}


class Sqs:
    """Messages of a queue, by calls of SQS's JSON protocol."""

    queue = _QUEUE

    def __init__(self, functions: Functions) -> None:
        self._functions = functions

    def life(self, count: int) -> Life:
        """Returns CPU seconds of send, receive and delete."""
        texts = [bodies.text(_SIZE)["body"] for _ in range(count)]
        took_send, _ = self._each("SendMessage", "MessageBody", texts)
        self._functions.later()
        return {"send": took_send, **self.take(count)}

    def take(self, count: int) -> Life:
        """CPU seconds of receiving and of deleting `count` messages."""
        asked = {"MaxNumberOfMessages": count, "WaitTimeSeconds": 0}
        took_receive, received = self._call("ReceiveMessage", asked)
        receipts = [each["ReceiptHandle"] for each in received["Messages"]]
        assert len(receipts) == count
        took_delete, _ = self._each("DeleteMessage", "ReceiptHandle", receipts)
        return {"receive": took_receive, "delete": took_delete}

    def _each(self, action: str, name: str, values: Sequence[str]) -> tuple[float, Any]:
        """Calls an action with one value, or its batch action."""
        if len(values) == 1:
            return self._call(action, {name: values[0]})
        entries = [{"Id": str(place), name: value} for place, value in enumerate(values)]
        took, answer = self._call(f"{action}Batch", {"Entries": entries})
        assert len(answer["Successful"]) == len(values)
        return took, answer

    def _call(self, action: str, members: dict[str, Any]) -> tuple[float, Any]:
        url = f"http://{_HOST}/{_ACCOUNT}/{self.queue}"
        key = self._functions.key_id, self._functions.secret
        body, headers = signed_call(*key, action, {"QueueUrl": url, **members})
        took, answer = self._functions.timed("dialects", "POST", "/", body, headers)
        return took, msgspec.json.decode(answer)


def signed_call(
    key_id: str, secret: str, action: str, members: dict[str, Any]
) -> tuple[bytes, dict[str, str]]:
    """Returns body and headers of a signed call of SQS."""
    body = msgspec.json.encode(members)
    headers = {
        "content-type": "application/x-amz-json-1.0",
        "x-amz-target": f"AmazonSQS.{action}",
    }
    request = AWSRequest("POST", f"http://{_HOST}/", headers=headers, data=body)
    SigV4Auth(Credentials(key_id, secret), "sqs", "eu-central-1").add_auth(request)
    return body, {"host": _HOST, **dict(request.headers.items())}


class Cmq:
    """Messages of a queue, by calls of CMQ, as its SDK sends and signs them by default."""

    def __init__(self, functions: Functions) -> None:
        self._functions = functions
        self._nonces = counting(1)

    def life(self, count: int) -> Life:
        """Returns CPU seconds of send, receive and delete."""
        texts = [bodies.text(_SIZE)["body"] for _ in range(count)]
        took_send, _ = self._each("SendMessage", "msgBody", texts, {"delaySeconds": "0"})
        self._functions.later()
        asked = {"pollingWaitSeconds": "0"}
        if count == 1:
            took_receive, received = self._call("ReceiveMessage", asked)
            handles = [received["receiptHandle"]]
        else:
            took_receive, received = self._call(
                "BatchReceiveMessage", {**asked, "numOfMsg": str(count)}
            )
            handles = [each["receiptHandle"] for each in received["msgInfoList"]]
        assert len(handles) == count
        took_delete, _ = self._each("DeleteMessage", "receiptHandle", handles, {})
        return {"send": took_send, "receive": took_receive, "delete": took_delete}

    def _each(
        self, action: str, name: str, values: Sequence[str], more: dict[str, str]
    ) -> tuple[float, Any]:
        if len(values) == 1:
            return self._call(action, {name: values[0], **more})
        named = {f"{name}.{place}": value for place, value in enumerate(values, 1)}
        return self._call(f"Batch{action}", {**named, **more})

    def _call(self, action: str, params: dict[str, str]) -> tuple[float, Any]:
        sent = {
            "Action": action,
            "Nonce": str(next(self._nonces)),
            "RequestClient": "SDK_Python_1.3",
            "SecretId": self._functions.key_id,
            "SignatureMethod": "HmacSHA1",
            "Timestamp": str(int(time.time())),
            "queueName": _QUEUE,
            **params,
        }
        text = of_cmq.text_to_sign("POST", _HOST, sent)
        sent[of_cmq.SIGNATURE] = sign(self._functions.secret, text, "sha1")
        body, headers = urlencode(sent).encode(), {"host": _HOST}
        took, answer = self._functions.timed("dialects", "POST", of_cmq.PATH, body, headers)
        told = msgspec.json.decode(answer)
        assert told["code"] == 0, told
        return took, told


class NativeTopic:
    """Messages of a topic, published together, in a queue that is subscribed."""

    _TOPIC, _QUEUE = "drinks", "teas"

    def __init__(self, functions: Functions) -> None:
        self._functions = functions
        client = functions.world.client(_ACCOUNT)
        client.put(f"/queues/{self._QUEUE}", {"partitions": 1})
        client.put(f"/topics/{self._TOPIC}", {"partitions": 1})
        copy = {"protocol": "queue", "endpoint": self._QUEUE}
        client.put(f"/topics/{self._TOPIC}/subscriptions/copy", copy)

    def life(self, count: int) -> Life:
        """CPU seconds of a publish, of a receive and a delete."""
        request = {"messages": [bodies.text(_SIZE) for _ in range(count)]}
        took, _ = self._functions.native("publish", f"/topics/{self._TOPIC}/messages", request)
        self._functions.later()
        self._functions.world.settle()
        return {"publish": took, **native_take(self._functions, self._QUEUE, count)}


class Sns(Sqs):
    """The same by calls of SNS, whose messages SQS's caller gets as notifications."""

    queue = "tolds"
    _TOPIC = f"arn:aws:sns:eu-central-1:{_ACCOUNT}:tales"

    def __init__(self, functions: Functions) -> None:
        super().__init__(functions)
        client = functions.world.client(_ACCOUNT)
        client.put(f"/queues/{self.queue}", {"partitions": 1})
        client.put("/topics/tales", {"partitions": 1})  # CreateTopic makes 4
        endpoint = f"arn:aws:sqs:eu-central-1:{_ACCOUNT}:{self.queue}"
        named = {"TopicArn": self._TOPIC, "Protocol": "sqs", "Endpoint": endpoint}
        self._publish({"Action": "Subscribe", **named})

    def life(self, count: int) -> Life:
        """CPU seconds of a publish, of a receive and a delete."""
        texts = [bodies.text(_SIZE)["body"] for _ in range(count)]
        given = {"Action": "Publish", "TopicArn": self._TOPIC, "Message": texts[0]}
        if count > 1:
            given = {"Action": "PublishBatch", "TopicArn": self._TOPIC}
            for place, text in enumerate(texts, 1):
                entry = f"PublishBatchRequestEntries.member.{place}"
                given |= {f"{entry}.Id": str(place), f"{entry}.Message": text}
        took = self._publish(given)
        self._functions.later()
        self._functions.world.settle()
        return {"publish": took, **self.take(count)}

    def _publish(self, form: dict[str, str]) -> float:
        """CPU seconds of a call of SNS."""
        body = urlencode({**form, "Version": "2010-03-31"}).encode()
        headers = {"content-type": "application/x-www-form-urlencoded; charset=utf-8"}
        request = AWSRequest("POST", f"http://{_HOST}/", headers=headers, data=body)
        credentials = Credentials(self._functions.key_id, self._functions.secret)
        SigV4Auth(credentials, "sns", "eu-central-1").add_auth(request)
        sent = {"host": _HOST, **dict(request.headers.items())}
        took, _ = self._functions.timed("dialects", "POST", "/", body, sent)
        return took


class NativeGroup:
    """Messages of a topic, published one by one, in the queue of a consumer group."""

    def __init__(self, functions: Functions) -> None:
        self._functions = functions

    def life(self, count: int) -> Life:
        """Returns CPU seconds of the last publish, of a receive and a delete."""
        for _ in range(count):
            request = {"messages": [bodies.text(_SIZE)]}
            took, _ = self._functions.native("publish", f"/topics/{_TOPIC}/messages", request)
            self._functions.later()
        self._functions.world.settle()
        return {"send": took, **native_take(self._functions, f"{_TOPIC}--{_GROUP}", count)}


class RocketMq:
    """Messages of a topic, by calls of RocketMQ over HTTP, as the SDK for Python makes them."""

    def __init__(self, functions: Functions) -> None:
        self._functions = functions
        client = functions.world.client(_ACCOUNT)
        name = f"{_TOPIC}--{_GROUP}"
        client.put(f"/queues/{name}", {"partitions": 1})
        group = {"protocol": "queue", "endpoint": name}
        client.put(f"/topics/{_TOPIC}/subscriptions/{_GROUP}", group)

    def life(self, count: int) -> Life:
        """Returns CPU seconds of the last publish, of a consume and an acknowledgement."""
        for _ in range(count):
            text = bodies.text(_SIZE)["body"]
            took_send, _ = self._call("POST", "", _document("Message", [f"MessageBody>{text}"]))
            self._functions.later()
        self._functions.world.settle()
        asked = f"consumer={_GROUP}&numOfMessages={count}"
        took_receive, received = self._call("GET", asked, "")
        handles = re.findall("<ReceiptHandle>(.+?)<", received)
        assert len(handles) == count
        document = _document("ReceiptHandles", [f"ReceiptHandle>{each}" for each in handles])
        took_delete, _ = self._call("DELETE", f"consumer={_GROUP}", document)
        return {"send": took_send, "receive": took_receive, "delete": took_delete}

    def _call(self, method: str, query: str, document: str) -> tuple[float, str]:
        path = f"/topics/{_TOPIC}/messages"
        content_type = "text/xml;charset=UTF-8" if document else ""
        headers = {"host": _HOST, "date": formatdate(usegmt=True), "x-mq-version": "2015-06-06"}
        text = of_rocketmq.text_to_sign(method, path, query, headers, content_type)
        signed = sign(self._functions.secret, text, "sha1")
        headers["authorization"] = f"MQ {self._functions.key_id}:{signed}"
        if document:
            headers["content-type"] = content_type
        return self._functions.timed("dialects", method, path, document.encode(), headers, query)


def _document(root: str, elements: Sequence[str]) -> str:
    """Returns XML as the SDK for Python writes it; an element is given as `name>text`."""
    inner = "".join(f"<{each}</{each.partition('>')[0]}>" for each in elements)
    space = "http://mq.aliyuncs.com/doc/v1/"
    return f'<?xml version="1.0" encoding="utf-8"?><{root} xmlns="{space}">{inner}</{root}>'
