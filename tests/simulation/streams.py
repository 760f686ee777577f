"""The readers of the stream: the deployed handlers, fed as the event source mappings feed them."""

from __future__ import annotations

import json
import zlib
from collections import deque
from collections.abc import Sequence

from tests.simulation.deployment import Deployment, functions, template
from tests.simulation.stage import Actor

from cirrusmq_local.cloud.patterns import compile_patterns
from cirrusmq_local.cloud.pump import Plan, records_done
from cirrusmq_local.cloud.template import StreamSource
from cirrusmq_local.engine.changes import StreamRecord as Change
from cirrusmq_local.judging.clients import Client

FIRST_RETRY_MS, LAST_RETRY_MS = 100, 30_000
"""Before a batch that failed is tried again; doubled each time."""
_RESTARTS = 0.05
"""The share of batches after which the mapping forgets its progress in them."""


class Mapping:
    """An event source mapping on one shard of the stream.

    A batch is tried by `Plan` until it is done, halved, or given up; those that are given up are in
    `unprocessed`. Now and then the mapping starts anew at the begin of its last batch, and cuts the
    records in another way.
    """

    def __init__(self, deployment: Deployment, role: str, shard: int, shards: int) -> None:
        self._deployment = deployment
        self.role = role
        self._source = source_of(role)
        self._wanted = compile_patterns(self._source.filters)
        self._client = Client(f"{role}-{shard}")
        self._shard, self._shards = shard, shards
        self._records: deque[Change] = deque()
        self._read_to = 0
        self.unprocessed: list[Change] = []
        self.actor: Actor | None = None

    def live(self) -> None:
        """Read whenever the actor is woken."""
        number = 0
        while True:
            self._read()
            while self._records:
                number += 1
                self._client.begin(number)
                self._process_batch(number)
                self._read()
            self._deployment.stage.park()

    def _process_batch(self, number: int) -> None:
        chaos = self._deployment.chaos
        draw = chaos.rng(self._client.name, number)
        limit = min(draw.choice((1, 3, 10, 1_000)), self._source.batch_size, len(self._records))
        batch = [self._records[place] for place in range(limit)]
        plan = Plan(self._source, batch)
        failures = 0
        while (piece := plan.next()) is not None:
            done, raised = self._try(piece)
            if not chaos.calm and draw.random() < _RESTARTS:
                return  # its progress was not noted down
            given_up = plan.settle(done, raised, self._age_seconds(piece))
            self.unprocessed += given_up
            for _ in range(done + len(given_up)):
                self._records.popleft()
            failures = failures + 1 if done < len(piece) else 0
            if failures:
                max_ms = min(FIRST_RETRY_MS * 2**failures, LAST_RETRY_MS)
                self._deployment.stage.pause(draw.randrange(max_ms // 2, max_ms))

    def _try(self, piece: Sequence[Change]) -> tuple[int, bool]:
        """How many records the function is done with, and whether it raised an error."""
        records = [change.as_lambda_record() for change in piece]
        event = json.loads(json.dumps({"Records": records}))
        shown = " ".join(f"{each.keys['pk']['S']} {each.keys['sk']['S']}" for each in piece)
        call = self._deployment.run(
            self._client, self.role, self.role, "", {"records": shown}, event
        )
        if not call.known:
            return 0, True
        return records_done(self._source, records, call.answer), False

    def _age_seconds(self, piece: Sequence[Change]) -> float:
        return (self._deployment.stage.now_ms() - piece[0].approximate_creation_ms) / 1_000

    def _read(self) -> None:
        table = self._deployment.tables.messages
        for change in self._deployment.engine.read_stream(table, self._read_to, 1_000):
            self._read_to = change.sequence
            images = {"Keys": change.keys, "NewImage": change.new_image or {}}
            head = {"eventName": change.event_name, "dynamodb": images}
            mine = zlib.crc32(change.keys["pk"]["S"].encode()) % self._shards == self._shard
            if mine and self._wanted(head):
                self._records.append(change)


def source_of(role: str) -> StreamSource:
    """How the template has the function read the stream."""
    name = functions()[role].name
    return next(source for source in template().streams if source.function == name)
