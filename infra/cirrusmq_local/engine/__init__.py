"""A DynamoDB that runs inside the process, over SQLite.

::

    engine = Engine(path, [TableSpec("Messages", stream=True)], now_ms=clock)
    attach(engine, boto3.client("dynamodb"))   # or, without botocore: EngineClient(engine)
"""

from __future__ import annotations

from cirrusmq_local.engine.attachment import attach, attach_globally
from cirrusmq_local.engine.changes import StreamRecord
from cirrusmq_local.engine.client import EngineClient
from cirrusmq_local.engine.engine import Engine
from cirrusmq_local.engine.errors import EngineError
from cirrusmq_local.engine.tables import TableSpec

__all__ = [
    "Engine",
    "EngineClient",
    "EngineError",
    "StreamRecord",
    "TableSpec",
    "attach",
    "attach_globally",
]
