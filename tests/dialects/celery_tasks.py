"""Tasks as a program of Celery on SQS has them; its settings name another host and key, no more."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

from celery import Celery

app: Any = Celery("tasks", broker=os.environ["BROKER"])
app.conf.update(
    broker_transport_options={
        "region": "eu-central-1",
        "visibility_timeout": int(os.environ.get("VISIBILITY", "30")),
        "polling_interval": 0.2,
        "wait_time_seconds": 2,
        "is_secure": False,
    },
    task_default_queue=os.environ["QUEUE"],
    task_acks_late=True,
    task_reject_on_worker_lost=True,
    worker_prefetch_multiplier=1,
    worker_enable_remote_control=False,
    broker_connection_retry_on_startup=True,
)
_DONE = Path(os.environ["DONE"])


def _note(line: str) -> None:
    with _DONE.open("a", encoding="utf-8") as file:
        file.write(f"{line}\n")


@app.task
def add(left: int, right: int) -> None:
    """Note a sum."""
    _note(f"{left} + {right} = {left + right}")


@app.task(bind=True, max_retries=3)
def stumble(self: Any, name: str) -> None:
    """Fail twice, then succeed: a retry is another message."""
    tries = self.request.retries + 1
    _note(f"{name} try {tries}")
    if tries < 3:
        raise self.retry(countdown=0.1)


@app.task
def linger(name: str, seconds: float) -> None:
    """Note the beginning; take a while; note the end."""
    _note(f"{name} begun by {os.getpid()}")
    time.sleep(seconds)
    _note(f"{name} done")
