"""CPU of a call of SQS's SDKs beside the same native call, both by the deployed handlers.

The calls are signed before the clock starts, and run in turn over the embedded engine in memory.
Both send, receive and delete messages of 1 KB in queues of one partition of the same service; what
the engine needs is in both.
"""

from __future__ import annotations

import gc
import itertools
import time
from collections.abc import Sequence
from typing import Any

import msgspec
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials
from msgspec.structs import replace

from cirrusmq.access import keys
from cirrusmq.wiring import bootstrap
from cirrusmq_local.cloud.functions import load_handler
from cirrusmq_local.cloud.template import ALL_DIALECTS, DIALECT_API, TEMPLATE, load
from cirrusmq_local.testing.world import World

from ..counted import bodies
from ..drawing.tables import middle, show
from .calls import Context, Service

GOAL = 1.3
_RUNS, _WARM = 300, 30
_BATCH = 10
_SIZE = 1_024
_URL = "http://127.0.0.1:8081/"


def run() -> None:
    """Print the table."""
    rows = []
    for count in (1, _BATCH):
        native, sqs = _measured(count)
        for call in ("send", "receive", "delete"):
            ours, theirs = middle(native[call]), middle(sqs[call])
            rows.append((f"{call} {count}", ours, theirs, theirs / ours, f"≤ {GOAL}"))
    heads = ["", "native", "SQS", "times native", "goal"]
    show(f"CPU of calls with messages of 1 KB, µs (medians of {_RUNS})", heads, rows)


_Taken = dict[str, list[float]]


def _measured(count: int) -> tuple[_Taken, _Taken]:
    """Microseconds of each call, native and of SQS."""
    world = World()
    # Signatures are of the machine's time.
    world.core = replace(world.core, real_seconds=lambda: int(time.time()))
    native, sqs = Service(world), _Sqs(world)
    taken: tuple[_Taken, _Taken] = ({}, {})
    gc.collect()
    gc.freeze()  # as a function does when it is loaded
    try:
        for number in range(_WARM + _RUNS):
            for into, seconds in zip(taken, (native.life(count), sqs.life(count)), strict=True):
                for call, took in seconds.items() if number >= _WARM else ():
                    into.setdefault(call, []).append(1e6 * took)
    finally:
        gc.unfreeze()
    return taken


class _Sqs:
    """The dialects' function, as Lambda's runtime calls it."""

    def __init__(self, world: World) -> None:
        self._world = world
        rights = keys.KeyRights(manages_keys=False)
        key, secret = keys.create_key(world.core, "alice", rights, signing=True)
        self._credentials = Credentials(key.id, secret)
        world.client("alice").put("/queues/jobs", {"partitions": 1})
        function = {
            each.folder.name: each for each in load(TEMPLATE, {"Dialects": ALL_DIALECTS}).functions
        }["dialects"]
        self._handler = load_handler(function)
        self._numbers = itertools.count()

    def life(self, count: int) -> dict[str, float]:
        """CPU seconds of each call in the life of so many messages."""
        texts = [bodies.text(_SIZE)["body"] for _ in range(count)]
        took_send, _ = self._timed("SendMessage", "MessageBody", texts)
        self._world.clock.pass_seconds(0.001)
        asked = {"MaxNumberOfMessages": count, "WaitTimeSeconds": 0}
        took_receive, received = self._call("ReceiveMessage", asked)
        receipts = [each["ReceiptHandle"] for each in received["Messages"]]
        assert len(receipts) == count
        took_delete, _ = self._timed("DeleteMessage", "ReceiptHandle", receipts)
        return {"send": took_send, "receive": took_receive, "delete": took_delete}

    def _timed(self, action: str, name: str, values: Sequence[str]) -> tuple[float, Any]:
        """A call of an action with one value, or of its batch."""
        if len(values) == 1:
            return self._call(action, {name: values[0]})
        entries = [{"Id": str(place), name: value} for place, value in enumerate(values)]
        took, answer = self._call(f"{action}Batch", {"Entries": entries})
        assert len(answer["Successful"]) == len(values)
        return took, answer

    def _call(self, action: str, members: dict[str, Any]) -> tuple[float, Any]:
        body = msgspec.json.encode({"QueueUrl": f"{_URL}alice/jobs", **members})
        headers = {
            "content-type": "application/x-amz-json-1.0",
            "x-amz-target": f"AmazonSQS.{action}",
        }
        request = AWSRequest("POST", _URL, headers=headers, data=body)
        SigV4Auth(self._credentials, "sqs", "eu-central-1").add_auth(request)
        sent = {"host": "127.0.0.1:8081", **dict(request.headers.items())}
        _, event, _ = self._world.event("POST", "/", body, sent, api=DIALECT_API)
        with bootstrap.serving(self._world.core):
            began = time.process_time()
            answer = self._handler(event, Context())
            took = time.process_time() - began
        assert answer["statusCode"] == 200, answer["body"]
        return took, msgspec.json.decode(answer["body"] or "{}")
