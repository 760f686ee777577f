"""A worker that handles what the web application sends."""

from __future__ import annotations

from cirrusmq_client import Consumer, Received


def handle(message: Received) -> None:
    print(f"handled {message.text}", flush=True)


Consumer("orders", handle, workers=4, grace_seconds=20).run()
