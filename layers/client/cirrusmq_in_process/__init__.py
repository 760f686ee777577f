"""Calls of plain queues in the client's own process, on the deployment's tables.

    client.send ──> may it here? ── yes ──> the core's send, on DynamoDB
                        └── no ───> the URL, as without this package

`cirrusmq_client` loads it for `Client(..., in_process=True)`. It knows paths and JSON, nothing of
the client: it answers a call as the URL would, or leaves it to the URL. The modules:

| module | |
| --- | --- |
| `process` | which calls may be made here |
| `conditions` | if any is made here: formats, the clock, and what AWS refused |
| `calls` | one call with its repetitions: here, by the URL, or one after the other |
| `work` | the four calls: send, receive, delete, visibility |
| `allowances` | that the URL accepted such a call within the last minute |
| `clock` | the time here against the time of DynamoDB's answers |
| `wiring` | a core that has two tables and nothing else |
"""

from __future__ import annotations

from cirrusmq import __version__
from cirrusmq_in_process.process import Process
from cirrusmq_in_process.wiring import open_process

__all__ = ["Process", "__version__", "open_process"]
