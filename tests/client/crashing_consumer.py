"""An exactly-once consumer whose process dies at random, before and after the commit; run by a
test again and again: `crashing_consumer.py <queue> <SQLAlchemy URL> <seed>`."""

from __future__ import annotations

import os
import random
import sys
from collections.abc import Callable

from sqlalchemy import Connection, create_engine, text

from cirrusmq_client import Client, ExactlyOnce, Received, SqlTransactions

queue, url, seed = sys.argv[1:]
chance = random.Random(seed)


def maybe_die() -> None:
    if chance.random() < 0.04:
        os._exit(9)


class DiesAfterCommit(SqlTransactions):
    def run(self, key: str, group: str, work: Callable[[Connection], object]) -> object:
        result = super().run(key, group, work)
        maybe_die()
        return result


def write(message: Received, connection: Connection) -> None:
    connection.execute(text("INSERT INTO effects VALUES (:body)"), {"body": message.text})
    maybe_die()


once = ExactlyOnce(DiesAfterCommit(create_engine(url)), "shop")
with Client() as client:
    counts = client.show_queue(queue)["counts"]
    while counts["active"] + counts["inactive"]:
        for message in client.receive(queue, 4, wait_seconds=1):
            once.handle(message, write)
            client.delete(queue, [message.receipt])
        counts = client.show_queue(queue)["counts"]
