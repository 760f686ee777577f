"""The function that publishes reports, against a bucket that holds to conditions of writes."""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Callable, Iterator
from hashlib import md5
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any
from urllib.parse import unquote

import pytest

BUCKET = "/reports/"


class Objects:
    """What is in the bucket, and what happens before its next write."""

    def __init__(self) -> None:
        self.held: dict[str, bytes] = {}
        self.before_put: list[Callable[[], None]] = []
        self.puts: list[tuple[str, int]] = []

    def put_json(self, name: str, **content: Any) -> None:
        self.held[name] = json.dumps(content).encode()

    def propose(self, run: str, began_from: str, documents_run: str = "") -> None:
        pointer = json.dumps({"report": "billing", "run": run}) + "\n"
        self.put_json(
            f"proposals/billing/{run}.json",
            report="billing",
            run=run,
            began_from=began_from,
            pointer=pointer,
            documents_run=documents_run,
        )

    @property
    def current(self) -> str:
        return str(json.loads(self.held["current/billing.json"])["run"])


class Context:
    def __init__(self, *left_ms: int) -> None:
        self._left_ms = list(left_ms)

    def get_remaining_time_in_millis(self) -> int:
        return self._left_ms.pop(0) if self._left_ms else 900_000


@pytest.fixture
def objects() -> Objects:
    return Objects()


@pytest.fixture
def app(objects: Objects, root: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            content = objects.held.get(self._name)
            if content is None:
                self._tell(404, _error("NoSuchKey"))
            else:
                self._tell(200, content, _tag(content))

        def do_PUT(self) -> None:
            if self.headers.get("Expect") == "100-continue":
                self.send_response_only(100)
                self.end_headers()
            content = self.rfile.read(int(self.headers["Content-Length"]))
            if objects.before_put:
                objects.before_put.pop(0)()
            held = objects.held.get(self._name)
            wanted, absent = self.headers.get("If-Match"), self.headers.get("If-None-Match")
            assert wanted or absent == "*", "each write has a condition"
            fails = held is not None if absent else held is None or _tag(held) != wanted
            objects.puts.append((self._name, 412 if fails else 200))
            if fails:
                self._tell(412, _error("PreconditionFailed"))
                return
            objects.held[self._name] = content
            self._tell(200, b"", _tag(content))

        @property
        def _name(self) -> str:
            return unquote(self.path.split("?")[0]).removeprefix(BUCKET)

        def _tell(self, status: int, body: bytes, tag: str = "") -> None:
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            if tag:
                self.send_header("ETag", tag)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None: ...

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    monkeypatch.setenv("REPORTS_BUCKET", "reports")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-central-1")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "x")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "y")
    monkeypatch.setenv("AWS_ENDPOINT_URL_S3", f"http://127.0.0.1:{server.server_address[1]}")
    monkeypatch.syspath_prepend(str(root / "functions/publish_report"))
    for name in ("app", "reports_bucket"):
        sys.modules.pop(name, None)
    module = import_module("app")
    yield module
    import_module("reports_bucket")._s3().close()
    for name in ("app", "swap", "reports_bucket"):
        sys.modules.pop(name, None)
    server.shutdown()
    thread.join()
    server.server_close()


def _error(code: str) -> bytes:
    return f"<Error><Code>{code}</Code><Message>none</Message></Error>".encode()


def _tag(content: bytes) -> str:
    return f'"{md5(content, usedforsecurity=False).hexdigest()}"'


def publish(app: ModuleType, run: str, **more: Any) -> Any:
    event = {"report": "billing", "proposal": run, "next": 0, **more}
    return app.handler(event, Context(*more.pop("left_ms", ())))


def test_the_first_run_and_the_next_one_are_published(app: ModuleType, objects: Objects) -> None:
    objects.propose("1", "")
    objects.propose("2", "1")
    for run in ("1", "2", "2"):
        assert publish(app, run)["outcome"] == "published"
        assert objects.current == run
    assert objects.puts == [("current/billing.json", 200)] * 2


@pytest.mark.parametrize("begun", ["", "1"])
def test_one_of_two_concurrent_swaps_is_refused(
    app: ModuleType, objects: Objects, begun: str
) -> None:
    if begun:
        objects.put_json("current/billing.json", run="1")
    objects.propose("2", begun)
    objects.before_put.append(lambda: objects.put_json("current/billing.json", run="other"))

    assert publish(app, "2")["outcome"] == "outdated"

    assert objects.puts == [("current/billing.json", 412)]
    assert objects.current == "other"


def test_documents_are_copied_after_the_swap_and_never_written_over(
    app: ModuleType, objects: Objects
) -> None:
    swap = import_module("swap")
    files = {f"acme/INV-acme-00000{n}.json": f"document {n}".encode() for n in range(3)}
    home = "runs/billing/1"
    for name, content in files.items():
        objects.held[f"{home}/documents/{name}"] = content
    objects.held[f"{home}/documents.json"] = swap.index_of(files.items()).encode()
    objects.held["documents/acme/INV-acme-000001.json"] = b"another"
    objects.propose("1", "", documents_run="1")

    first = app.handler(
        {"report": "billing", "proposal": "1", "next": 0}, Context(900_000, 900_000, 5)
    )
    assert (first["outcome"], first["next"]) == ("published", 2)
    answer = publish(app, "1", next=2)
    assert (answer["outcome"], answer["next"], answer["different"]) == ("published", None, [])
    assert {name for name in objects.held if name.startswith("documents/")} == {
        f"documents/{name}" for name in files
    }
    assert objects.held["documents/acme/INV-acme-000002.json"] == b"document 2"
    assert objects.held["documents/acme/INV-acme-000001.json"] == b"another"
    assert publish(app, "1")["different"] == ["documents/acme/INV-acme-000001.json"]


def test_without_a_proposal_missing_documents_of_the_current_run_are_copied(
    app: ModuleType, objects: Objects
) -> None:
    swap = import_module("swap")
    with pytest.raises(LookupError, match="no billing"):
        app.handler({"report": "billing"}, Context())
    name = "acme/INV-acme-000001.json"
    objects.held["runs/billing/1/documents.json"] = swap.index_of([(name, b"made")]).encode()
    objects.held[f"runs/billing/1/documents/{name}"] = b"made"
    objects.put_json("current/billing.json", run="2", documents_run="1")

    answer = app.handler({"report": "billing"}, Context())

    assert (answer["outcome"], answer["next"], answer["different"]) == ("published", None, [])
    assert objects.held[f"documents/{name}"] == b"made"
    assert objects.current == "2"


def test_a_missing_proposal_is_an_error(app: ModuleType) -> None:
    with pytest.raises(LookupError, match="there is no proposal 7 of billing"):
        publish(app, "7")
