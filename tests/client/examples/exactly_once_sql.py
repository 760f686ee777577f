"""The rows of each message are written once, also if it is delivered twice or a worker dies."""

from __future__ import annotations

from sqlalchemy import Connection, create_engine, text

from cirrusmq_client import Consumer, ExactlyOnce, Received, SqlTransactions

engine = create_engine("sqlite:///shop.db")
store = SqlTransactions(engine)
store.create_table()
with engine.begin() as setup:
    setup.execute(text("CREATE TABLE IF NOT EXISTS sold (what TEXT)"))


@ExactlyOnce(store, group="shop")
def sell(message: Received, connection: Connection) -> None:
    connection.execute(text("INSERT INTO sold VALUES (:what)"), {"what": message.text})


Consumer("orders", sell).run()
