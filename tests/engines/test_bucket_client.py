"""The core's port of a bucket, on the embedded S3 and on moto's; and an S3 that fails."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError
from botocore.session import Session
from moto import mock_aws

from cirrusmq.base.errors import Unavailable
from cirrusmq.runtime.core import Bodies
from cirrusmq.wiring.bucket import LONGEST_PAUSES_SECONDS, Bucket, make_s3
from cirrusmq_local.bucket import Bucket as Embedded
from cirrusmq_local.bucket import attach_bucket

NAME = "bodies"
KEY = "d01/1f3/an id"


@pytest.fixture(autouse=True)
def credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "any")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "any")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")


@pytest.fixture(scope="module")
def session() -> Session:
    """Of all clients here: what botocore reads for a client of S3, it reads once a session."""
    return Session()


@pytest.fixture(params=["embedded", "folder", "moto"])
def bodies(request: pytest.FixtureRequest, session: Session, tmp_path: Path) -> Iterator[Bodies]:
    if request.param == "moto":
        with mock_aws():
            boto3.client("s3").create_bucket(Bucket=NAME)
            yield Bucket(partial(make_s3, session), NAME, no_pause)
    else:
        folder = tmp_path / NAME if request.param == "folder" else None
        detach = attach_bucket(Embedded(NAME, [], folder, now_ms=lambda: 0), session)
        yield Bucket(partial(make_s3, session), NAME, no_pause)
        detach()


def no_pause(seconds: float) -> None:
    pass


def test_put_bodies_are_there(bodies: Bodies) -> None:
    bodies.put(KEY, b"one")
    bodies.put("d01/1f3/other", b"")
    assert bodies.get(KEY) == b"one"
    assert bodies.get("d01/1f3/other") == b""
    bodies.put(KEY, b"two")
    assert bodies.get(KEY) == b"two"


PARTS = [(0, 4), (2, 6), (4, None), (9, 10), (6, 99), (10, 12), (3, 3), (5, 2), (0, 0)]


def test_a_part_is_read_as_of_bytes(bodies: Bodies) -> None:
    held = b"0123456789"
    bodies.put(KEY, held)
    for start, end in PARTS:
        assert bodies.get(KEY, start, end) == held[start:end], (start, end)


def test_of_an_empty_object_every_part_is_empty(bodies: Bodies) -> None:
    bodies.put(KEY, b"")
    assert [bodies.get(KEY, *part) for part in ((0, 4), (1, None), (0, 0))] == [b"", b"", b""]


def test_missing_bodies_are_told_apart_from_empty_ones(bodies: Bodies) -> None:
    assert bodies.get(KEY) is None
    assert bodies.get(KEY, 2, 4) is None
    assert bodies.get(KEY, 2, 2) is None
    assert bodies.copy(KEY, "d02/1f3/x") is False
    assert bodies.copy(KEY, KEY) is False
    assert bodies.get("d02/1f3/x") is None


def test_a_copy_is_made_in_the_bucket_and_onto_itself(bodies: Bodies) -> None:
    bodies.put(KEY, b"one")
    assert bodies.copy(KEY, "d16/1f3/an id") is True
    assert bodies.copy(KEY, KEY) is True
    assert [bodies.get(KEY), bodies.get("d16/1f3/an id")] == [b"one", b"one"]


def test_four_megabytes_come_back_whole(bodies: Bodies) -> None:
    data = bytes(range(256)) * 16_384
    bodies.put(KEY, data)
    assert bodies.get(KEY) == data
    assert bodies.get(KEY, 1_000_000, 1_000_300) == data[1_000_000:1_000_300]


def test_the_client_is_made_at_the_first_use_and_once() -> None:
    session = Session()
    embedded = Embedded(NAME, [], None, now_ms=lambda: 0)
    attach_bucket(embedded, session)
    made: list[str] = []
    create = session.create_client

    def counted(service: str, **more: Any) -> Any:
        made.append(service)
        return create(service, **more)

    session.create_client = counted
    bodies = Bucket(partial(make_s3, session), NAME, no_pause)
    assert made == []
    threads = [threading.Thread(target=bodies.put, args=(f"d01/{n}", b"x")) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert made == ["s3"]
    assert len(embedded.keys()) == 8


def test_a_try_ends_after_seconds_and_the_sdk_adds_none() -> None:
    """Three of them are over before the API gives a call up."""
    session = Session()
    attach_bucket(Embedded(NAME, [], None, now_ms=lambda: 0), session)
    bodies = Bucket(partial(make_s3, session), NAME, no_pause)
    bodies.put(KEY, b"")
    config = bodies._made.meta.config
    assert (config.connect_timeout, config.read_timeout) == (2, 5)
    assert config.retries["total_max_attempts"] == 1
    tries = len(LONGEST_PAUSES_SECONDS) + 1
    assert tries == 3
    assert tries * (2 + 5) + sum(LONGEST_PAUSES_SECONDS) < 29


Answer = Callable[[BaseHTTPRequestHandler], None]


def refuse(status: int, code: str) -> Answer:
    def answer(request: BaseHTTPRequestHandler) -> None:
        text = f"<Error><Code>{code}</Code><Message>no</Message></Error>".encode()
        request.send_response(status)
        request.send_header("content-length", str(len(text)))
        request.end_headers()
        request.wfile.write(text)

    return answer


def tell(content: bytes, *, of: int | None = None) -> Answer:
    """Answer 200 with content, which may end before its length says so."""

    def answer(request: BaseHTTPRequestHandler) -> None:
        request.send_response(200)
        request.send_header("content-length", str(len(content) if of is None else of))
        request.end_headers()
        request.wfile.write(content)
        request.close_connection = True

    return answer


def hang_up(request: BaseHTTPRequestHandler) -> None:
    request.close_connection = True


class FailingS3:
    """Answers what a test lists, one after the other; the last one again and again."""

    def __init__(self) -> None:
        self.answers: list[Answer] = []
        self.asked: list[str] = []
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                self.rfile.read(int(self.headers.get("content-length", 0)))
                outer.asked.append(f"{self.command} {self.path}")
                more = len(outer.answers) > 1
                (outer.answers.pop(0) if more else outer.answers[0])(self)

            def do_PUT(self) -> None:
                self.do_GET()

            def log_message(self, format: str, *args: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        self.thread = threading.Thread(target=self.server.serve_forever, args=(0.05,))
        self.thread.start()

    def stop(self) -> None:
        self.server.shutdown()
        self.thread.join()
        self.server.server_close()


@pytest.fixture
def failing(monkeypatch: pytest.MonkeyPatch) -> Iterator[FailingS3]:
    started = FailingS3()
    monkeypatch.setenv("AWS_ENDPOINT_URL_S3", started.url)
    yield started
    started.stop()


@pytest.fixture
def pauses() -> list[float]:
    return []


@pytest.fixture
def client(failing: FailingS3, session: Session, pauses: list[float]) -> Iterator[Bucket]:
    made = Bucket(partial(make_s3, session), NAME, pauses.append)
    yield made
    if made._made is not None:
        made._made.close()


@pytest.mark.parametrize(
    "failure",
    [refuse(503, "SlowDown"), refuse(500, "InternalError"), hang_up, tell(b"on", of=3)],
    ids=["busy", "error", "hung up", "broken off"],
)
def test_a_read_is_tried_three_times(
    failing: FailingS3, client: Bucket, pauses: list[float], failure: Answer
) -> None:
    failing.answers = [failure, failure, tell(b"one")]
    assert client.get(KEY) == b"one"
    assert len(failing.asked) == 3
    assert all(0 <= p <= limit for p, limit in zip(pauses, LONGEST_PAUSES_SECONDS, strict=True))


@pytest.mark.parametrize(
    "operation",
    [
        lambda client: client.put(KEY, b"one"),
        lambda client: client.get(KEY),
        lambda client: client.get(KEY, 2, 4),
        lambda client: client.copy(KEY, KEY),
    ],
    ids=["put", "get", "get a part", "copy"],
)
@pytest.mark.parametrize("failure", [refuse(503, "SlowDown"), hang_up], ids=["busy", "hung up"])
def test_after_the_third_failure_it_is_unavailable(
    failing: FailingS3, client: Bucket, failure: Answer, operation: Callable[[Bucket], object]
) -> None:
    failing.answers = [failure]
    with pytest.raises(Unavailable):
        operation(client)
    assert len(failing.asked) == 3


def test_a_copy_failed_in_an_answer_of_success_is_tried_again(
    failing: FailingS3, client: Bucket
) -> None:
    """S3 begins its answer to a copy before the copy is done."""
    failure = tell(b"<Error><Code>InternalError</Code><Message>no</Message></Error>")
    done = tell(b"<CopyObjectResult><ETag>x</ETag></CopyObjectResult>")
    failing.answers = [failure, done]
    assert client.copy(KEY, KEY) is True
    assert len(failing.asked) == 2


def test_a_denied_call_is_neither_missing_nor_repeated(failing: FailingS3, client: Bucket) -> None:
    failing.answers = [refuse(403, "AccessDenied")]
    for operation in (lambda: client.get(KEY), lambda: client.copy(KEY, KEY)):
        with pytest.raises(ClientError, match="AccessDenied"):
            operation()
    with pytest.raises(ClientError, match="AccessDenied"):
        client.put(KEY, b"one")
    assert len(failing.asked) == 3


def test_a_missing_bucket_is_not_a_missing_object(failing: FailingS3, client: Bucket) -> None:
    failing.answers = [refuse(404, "NoSuchBucket")]
    with pytest.raises(ClientError, match="NoSuchBucket"):
        client.get(KEY)
