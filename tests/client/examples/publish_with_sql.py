"""An order is in the database if and only if it is published, also if the program dies between."""

from __future__ import annotations

import sys

from sqlalchemy import Connection, create_engine, text

from cirrusmq_client import Producer, SqlDecisions

engine = create_engine("sqlite:///orders.db")
store = SqlDecisions(engine)
store.create_table()
with engine.begin() as setup:
    setup.execute(text("CREATE TABLE IF NOT EXISTS orders (what TEXT NOT NULL)"))


def place(what: str) -> None:
    """Write an order down and publish it."""

    def write(connection: Connection) -> None:
        connection.execute(text("INSERT INTO orders VALUES (:what)"), {"what": what})

    transaction.run([what], write)


producer = Producer()
with producer.transaction("orders", check=store, check_after_seconds=1) as transaction:
    for line in sys.stdin:
        place(line.strip())
        print(f"placed {line.strip()}", flush=True)
