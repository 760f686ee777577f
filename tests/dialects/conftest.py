"""SDKs of other services, unmodified, on the service in memory or on one that runs."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any
from urllib.parse import urlsplit

import boto3
import httpx
import pytest
from botocore.awsrequest import AWSPreparedRequest, AWSResponse
from botocore.config import Config
from msgspec.structs import replace
from tests.dialects.cutter import Cutter
from tests.stack import Stack

from cirrusmq.access import keys
from cirrusmq_local.cloud.template import DIALECT_API
from cirrusmq_local.testing import Client, Reply, World

URL = "http://127.0.0.1:8081"
REGION = "eu-central-1"


class Key:
    """An access key that signs."""

    def __init__(self, world: World, account: str, **rights: Any) -> None:
        given = keys.KeyRights(manages_keys=False, **rights)
        key, self.secret = keys.create_key(world.core, account, given, signing=True)
        self.id = key.id


class Raw:
    """The body of an answer, as botocore reads it."""

    def __init__(self, content: bytes) -> None:
        self._content = content

    def stream(self, *_: object, **__: object) -> Iterator[bytes]:
        yield self._content


@cache
def session() -> Any:
    """One for the process: it takes long to make."""
    return boto3.Session()


def deliver(world: World, request: AWSPreparedRequest) -> AWSResponse:
    """Have the service in memory answer what an SDK is about to send."""
    reply = call(
        world,
        request.method,
        request.url,
        {
            name: value.decode() if isinstance(value, bytes) else value
            for name, value in request.headers.items()
        },
        request.body or b"",
    )
    headers = {name.lower(): value for name, value in reply.headers.items()}
    return AWSResponse(request.url, reply.status, headers, Raw(reply.text.encode()))


def call(world: World, method: str, url: str, headers: dict[str, str], body: Any) -> Reply:
    """A call as it is on the wire."""
    parts = urlsplit(url)
    content = body.encode() if isinstance(body, str) else body
    headers = {"host": parts.netloc, **headers}
    path = parts.path or "/"
    return world.call(method, path, content, headers, parts.query, api=DIALECT_API)


def client_of(world: World, key: Key, service: str = "sqs", **options: Any) -> Any:
    """A client of a service as any program makes it, whose calls end in the world."""
    made = session().client(
        service,
        endpoint_url=URL,
        region_name=REGION,
        aws_access_key_id=key.id,
        aws_secret_access_key=key.secret,
        config=Config(retries={"total_max_attempts": 1}, **options),
    )
    made.meta.events.register(
        f"before-send.{service}", lambda request, **_: deliver(world, request)
    )
    return made


def running_client(running: dict[str, Any], service: str = "sqs", **options: Any) -> Any:
    """boto3's client of a service, with nothing but another endpoint and another key."""
    given = {
        "endpoint_url": running["dialect_url"],
        "region_name": REGION,
        "aws_access_key_id": running["signing_key"]["access_key_id"],
        "aws_secret_access_key": running["signing_key"]["secret"],
    }
    return session().client(service, **{**given, **options})


def change_settings(world: World, **settings: Any) -> None:
    """Have settings of the deployment differ."""
    world.core = replace(world.core, settings=replace(world.core.settings, **settings))


@pytest.fixture
def world() -> Iterator[World]:
    made = World()
    # SDKs sign by the machine's clock.
    made.core = replace(made.core, real_seconds=lambda: int(time.time()))
    yield made
    made.engine.close()


@pytest.fixture
def key(world: World) -> Key:
    """A signing key of the account `shop`."""
    return Key(world, "shop")


@pytest.fixture
def sqs(world: World, key: Key) -> Any:
    """boto3's client of SQS."""
    return client_of(world, key)


@pytest.fixture
def sns(world: World, key: Key) -> Any:
    """boto3's client of SNS."""
    return client_of(world, key, "sns")


@pytest.fixture
def shop(world: World) -> Client:
    """A native client of the same account."""
    return world.client("shop")


@pytest.fixture
def url(sqs: Any) -> str:
    """The URL of a queue `orders`."""
    made: str = sqs.create_queue(QueueName="orders")["QueueUrl"]
    return made


@pytest.fixture
def arn(sns: Any) -> str:
    """The ARN of a topic `drinks`."""
    made: str = sns.create_topic(Name="drinks")["TopicArn"]
    return made


@pytest.fixture
def name() -> str:
    """One that no other test has."""
    return f"e-{uuid.uuid4().hex}"


MakeKey = Callable[..., Key]


@pytest.fixture
def make_key(world: World) -> MakeKey:
    """Signing keys: `make_key("shop", scope=…)`."""
    return lambda account, **rights: Key(world, account, **rights)


@pytest.fixture(scope="session")
def running(shared_stack: Stack) -> dict[str, Any]:
    """What `cirrusmq up` told its clients."""
    return shared_stack.connection()


@pytest.fixture
def orders(running: dict[str, Any]) -> Iterator[None]:
    """Ends the queue and the topic of this name, which more than one example makes."""
    yield
    key = running["signing_key"]
    owner = {"authorization": f"Bearer {key['access_key_id']}:{key['secret']}"}
    for path in ("queues", "topics"):
        gone = httpx.delete(f"{running['url']}/{path}/orders", headers=owner, timeout=60)
        assert gone.status_code in (204, 404), gone.text


@pytest.fixture
def running_sqs(running: dict[str, Any]) -> Any:
    """boto3's client of SQS."""
    return running_client(running)


@pytest.fixture
def cutter(running: dict[str, Any]) -> Iterator[Cutter]:
    made = Cutter(running["dialect_url"])
    yield made
    made.stop()
