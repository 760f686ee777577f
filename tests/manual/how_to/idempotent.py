"""A handler that may be called twice with one message."""

from __future__ import annotations

import json
import sqlite3

from cirrusmq_client import Received

shop = sqlite3.connect("shop.db", check_same_thread=False)
shop.execute("CREATE TABLE IF NOT EXISTS payments (paid_by TEXT PRIMARY KEY, cents INTEGER)")


def handle(message: Received) -> None:
    order = json.loads(message.text)
    with shop:  # the second time it changes nothing
        shop.execute(
            "INSERT INTO payments VALUES (?, ?) ON CONFLICT DO NOTHING",
            (message.id, order["cents"]),
        )
