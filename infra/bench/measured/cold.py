"""Cold starts: the built layer and a function, from the start of a process to its first answer.

Beside them is the minimum of a program on DynamoDB: `boto3.client("dynamodb")` and one put. Both
use HTTP to the same endpoint, the embedded engine in this process. CPU seconds are of the measured
process alone, up to its first answer: other load of the machine has little effect, and the end of a
process, which does not happen in Lambda, is not included.

The dialects' function loads a dialect at its first call; its row is for a message sent by SQS's
SDK, whose key KMS decrypts.
"""

from __future__ import annotations

import base64
import json
import os
import platform
import shutil
import site
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from cirrusmq.access import keys
from cirrusmq_local.cloud.template import ALL_DIALECTS, DIALECT_API
from cirrusmq_local.engine import EngineError
from cirrusmq_local.testing import World

from ..drawing.tables import middle, show
from .dialect_calls import signed_call

HOT = ("send", "receive", "delete", "publish", "dialects")
RUNS = 9
ROOT = Path(__file__).resolve().parents[3]

_TOLD = "; import os, time; print(time.process_time(), flush=True); os._exit(0)"
_IMPORT_BOTO3 = "import boto3" + _TOLD
_LOAD = "import app" + _TOLD
# Only its imports, without the objects that calls need.
_IMPORT = "import cirrusmq_lambda.loading as l; l.finish_loading = lambda: None; " + _LOAD
_BARE_PUT = """
import boto3
client = boto3.client("dynamodb")
client.put_item(TableName="Messages", Item={"pk": {"S": "bare"}, "sk": {"S": "put"}})
"""
_FIRST_ANSWER = """
import json, os
import app

class Context:
    aws_request_id = "cold"
    def get_remaining_time_in_millis(self):
        return 29_000

answer = app.handler(json.loads(os.environ["EVENT"]), Context())
assert answer["statusCode"] in (200, 201), answer
"""


def run() -> None:
    """Prints both tables; all columns are from one run, alternating."""
    with tempfile.TemporaryDirectory() as name, _endpoint() as (url, events):
        folder = Path(name)
        layer = build_layer(folder / "layer")
        plain = folder / "plain"
        shutil.copytree(layer, plain, ignore=shutil.ignore_patterns("__pycache__"))
        functions = {each: _build_function(folder, each) for each in HOT}
        _show_imports(layer, plain, functions)
        _show_first_answers(layer, functions, url, events)


def build_layer(folder: Path) -> Path:
    """Builds the layer as `sam build` does, for this interpreter and this processor."""
    major, minor = sys.version_info[:2]
    machine = "aarch64" if platform.machine() == "arm64" else platform.machine()
    given = {
        "ARTIFACTS_DIR": folder,
        "RUNTIME": f"{major}.{minor}",
        "MACHINE": machine,
        "PYTHON": sys.executable,
        "COMPILER": sys.executable,
    }
    subprocess.run(
        ["make", "build-CoreLayer", *(f"{name}={value}" for name, value in given.items())],
        cwd=ROOT / "layers/core",
        check=True,
        stderr=subprocess.DEVNULL,
    )
    return folder / "python"


def _build_function(folder: Path, name: str) -> Path:
    made = folder / name
    shutil.copytree(ROOT / "functions" / name, made, ignore=shutil.ignore_patterns("__pycache__"))
    return made


def _show_imports(layer: Path, plain: Path, functions: dict[str, Path]) -> None:
    rows = []
    for name, function in functions.items():
        ours, uncompiled, theirs = [], [], []
        for _ in range(RUNS):
            theirs.append(_seconds(_IMPORT_BOTO3, *_installed()))
            ours.append(_seconds(_IMPORT, layer, function))
            uncompiled.append(_seconds(_IMPORT, plain, function))
        rows.append(
            (
                *(name, middle(theirs), middle(ours)),
                middle([a / b for a, b in zip(ours, theirs, strict=True)]),
                middle([a / b for a, b in zip(uncompiled, theirs, strict=True)]),
            )
        )
    show(
        f"Import of built functions (CPU seconds, median of {RUNS}, in turn)",
        ["function", "import boto3", "import app", "ratio", "ratio, not compiled"],
        rows,
    )


def _show_first_answers(
    layer: Path, functions: dict[str, Path], url: str, events: dict[str, str]
) -> None:
    rows = []
    for name, event in events.items():
        loaded, ours, theirs = [], [], []
        for _ in range(RUNS):
            theirs.append(_seconds(_BARE_PUT + _TOLD[2:], *_installed(), url=url))
            loaded.append(_seconds(_LOAD, layer, functions[name], url=url))
            answered = _FIRST_ANSWER + _TOLD[2:]
            ours.append(_seconds(answered, layer, functions[name], url=url, event=event))
        ratio = middle([a / b for a, b in zip(ours, theirs, strict=True)])
        call = middle([a - b for a, b in zip(ours, loaded, strict=True)])
        rows.append((name, middle(theirs), middle(loaded), call, middle(ours), ratio))
    heads = ["function", "boto3.client and one put", "loaded, with its client", "the call"]
    show(
        f"From the start of a process to the first answered send (CPU seconds, median of {RUNS})",
        [*heads, "answered", "ratio"],
        rows,
    )


def _installed() -> list[Path]:
    """Returns the packages of this environment, which pip has compiled."""
    return [Path(each) for each in site.getsitepackages()]


def _seconds(code: str, *path: Path, url: str = "", event: str = "") -> float:
    """Returns CPU seconds of a new interpreter up to the code's end."""
    environment = {
        "AWS_LAMBDA_FUNCTION_NAME": "cold",
        "AWS_ACCESS_KEY_ID": "cold",
        "AWS_SECRET_ACCESS_KEY": "cold",
        "AWS_REGION": "eu-central-1",
        "AWS_DEFAULT_REGION": "eu-central-1",
        "AWS_ENDPOINT_URL": url or "http://127.0.0.1:9",
        "DIALECTS": ALL_DIALECTS,
        "DIRECTORY_TABLE": "Directory",
        "MESSAGES_TABLE": "Messages",
        "USAGE_TABLE": "Usage",
        "EVENT": event,
        "POWERTOOLS_SERVICE_NAME": "cirrusmq",
        "PATH": os.environ["PATH"],
        # As in Lambda, whose code folder is read-only.
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONPATH": os.pathsep.join(map(str, path)),
    }
    ended = subprocess.run(
        [sys.executable, "-S", "-c", code],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    if ended.returncode:
        raise RuntimeError(ended.stderr)
    return float(ended.stdout)


@contextmanager
def _endpoint() -> Iterator[tuple[str, dict[str, str]]]:
    """Yields the URL of DynamoDB and KMS, with keys and a queue, and an event for each function."""
    world = World()
    client = world.client("acme")
    assert client.put("/queues/orders", {}).status in (200, 201)
    headers = {"authorization": client.authorization, "content-type": "application/json"}
    content = json.dumps({"messages": [{"body": "hello"}]}).encode()
    _, event, _ = world.event("POST", "/queues/orders/messages", content, headers)
    key, secret = keys.create_key(
        world.core, "acme", keys.KeyRights(manages_keys=False), signing=True
    )
    signed = signed_call(
        *(key.id, secret, "SendMessage"), {"QueueUrl": "acme/orders", "MessageBody": "hello"}
    )
    _, of_sqs, _ = world.event("POST", "/", *signed, api=DIALECT_API)
    events = {"send": json.dumps(event), "dialects": json.dumps(of_sqs)}
    server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(world))
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", events
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
        world.engine.close()


def _handler(world: World) -> type[BaseHTTPRequestHandler]:
    """Returns a handler of DynamoDB's and KMS's HTTP protocols for a world's engine and key."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            operation = self.headers["X-Amz-Target"].rpartition(".")[2]
            status = 200
            try:
                if operation == "Decrypt":
                    answer = _opened(world, asked)
                else:
                    answer = world.engine.execute(operation, _from_wire(asked))
            except EngineError as error:
                status, answer = (
                    400,
                    {"__type": f"com.amazonaws#{error.code}", "message": str(error)},
                )
            body = json.dumps(answer, default=lambda raw: base64.b64encode(raw).decode()).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/x-amz-json-1.0")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            pass

    return Handler


def _opened(world: World, asked: dict[str, Any]) -> dict[str, Any]:
    """Returns KMS's answer to the decryption of a signing key's secret."""
    (key_id,) = asked["EncryptionContext"].values()
    sealed = base64.b64decode(asked["CiphertextBlob"])
    return {"Plaintext": world.core.sealing.unseal(key_id, sealed).encode()}


def _from_wire(value: Any) -> Any:
    """Returns a request with binaries as bytes; in JSON they are in base64."""
    match value:
        case {"B": str(text)} if len(value) == 1:
            return {"B": base64.b64decode(text)}
        case dict():
            return {name: _from_wire(held) for name, held in value.items()}
        case list():
            return [_from_wire(held) for held in value]
    return value
