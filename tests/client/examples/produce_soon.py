"""Send messages one by one; those of one moment go together."""

from __future__ import annotations

from cirrusmq_client import Producer

with Producer() as producer, producer.closed_on_signals():
    futures = [producer.send_soon("orders", f"order {number}") for number in range(1_000)]
    print(len({future.result().id for future in futures}))
