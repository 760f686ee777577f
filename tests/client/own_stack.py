"""A stack that tells its tables, with a port at which DynamoDB's protocol is spoken.

python own_stack.py FOLDER: writes its URL and the port's in a line, and ends with its input. Run by
`test_own_process.py`. A line `policy <queue id>` has the policy of that queue in force at the port.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import msgspec
from botocore.exceptions import ClientError

from cirrusmq.wiring import bootstrap
from cirrusmq_local.cloud.own_policy import own_policy
from cirrusmq_local.cloud.policy_guard import PolicyGuard
from cirrusmq_local.engine import EngineError
from cirrusmq_local.engine.bodies import decode_body
from cirrusmq_local.stack.stack import Stack

ARN = "arn:aws:dynamodb:us-east-1:000000000000:table/"


class Tables:
    """The stack's store, as what does operations."""

    def __init__(self) -> None:
        self._client: Any = bootstrap.dynamodb()

    def execute(self, operation: str, request: Mapping[str, Any]) -> dict[str, Any]:
        method = re.sub(r"(?<!^)(?=[A-Z])", "_", operation).lower()
        try:
            answer: dict[str, Any] = getattr(self._client, method)(**request)
        except ClientError as error:
            told = error.response
            extra = {name: told[name] for name in ("Item", "CancellationReasons") if name in told}
            raise EngineError(
                told["Error"]["Code"], told["Error"]["Message"], extra=extra
            ) from error
        return answer


class Handler(BaseHTTPRequestHandler):
    """DynamoDB's protocol: the operation in a header, JSON with binaries in base64."""

    protocol_version = "HTTP/1.1"
    guard: PolicyGuard

    def do_POST(self) -> None:
        operation = self.headers["x-amz-target"].rpartition(".")[2]
        body = self.rfile.read(int(self.headers["content-length"]))
        status = 200
        try:
            answer = type(self).guard.execute(operation, decode_body(operation, body))
        except EngineError as error:
            status = 400
            kind = f"com.amazonaws.dynamodb.v20120810#{error.code}"
            answer = {"__type": kind, "message": error.message, **error.extra}
        content = msgspec.json.encode(answer)
        self.send_response(status)
        self.send_header("content-type", "application/x-amz-json-1.0")
        self.send_header("content-length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *args: object) -> None:
        """Quietly."""


def main(folder: Path) -> None:
    told = sys.stdout  # what functions print goes into the stack's log
    stack = Stack(folder, port=0, in_process=True, dialect_port=0)
    stack.start()
    tables = bootstrap.service().tables
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True

    def guard(*queue_ids: str) -> PolicyGuard:
        named = {"directory_arn": ARN + tables.directory, "messages_arn": ARN + tables.messages}
        return PolicyGuard(Tables(), own_policy("local", queue_ids, **named))

    Handler.guard = guard("none")
    Thread(target=server.serve_forever, daemon=True).start()
    print(json.dumps([stack.url, f"http://127.0.0.1:{server.server_port}"]), file=told, flush=True)
    for line in sys.stdin:
        Handler.guard = guard(*line.split())
        print("done", file=told, flush=True)
    server.shutdown()
    stack.stop()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
