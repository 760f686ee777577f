"""One worker for the queue of before and the new one."""

from __future__ import annotations

from cirrusmq_client import Consumer, Received


def handle(message: Received) -> None:
    print(f"handled {message.text}", flush=True)


old, new = Consumer("orders", handle), Consumer("orders-v2", handle)
old.start()
new.run()  # until SIGTERM
old.stop()
old.join()
