"""Adapters: the core's ports on AWS, each with its client made at the first use."""

from __future__ import annotations

import contextlib
import contextvars
import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from functools import cached_property
from ipaddress import ip_network
from pathlib import Path
from typing import Any, ClassVar, TypeVar

import botocore
import botocore.session
import msgspec
from botocore.config import Config
from botocore.exceptions import (
    BotoCoreError,
    ClientError,
    ConnectTimeoutError,
    EndpointConnectionError,
    HTTPClientError,
)

from cirrusmq.base.errors import Unavailable
from cirrusmq.runtime.core import Called, GivenUp, Posted, Settings

A = TypeVar("A")
B = TypeVar("B")

PARALLEL_CALLS = 16
_ERROR_CHARACTERS = 256


def awaited_config(**more: Any) -> Config:
    """Returns the configuration of clients whose caller waits: short times, without repeats."""
    return Config(
        # botocore would build a header at each call: a quarter of a call's CPU time.
        user_agent=f"CirrusMQ Botocore/{botocore.__version__}",
        connect_timeout=2,
        read_timeout=5,
        # One for each subscription that shares a push: a call more would connect each time.
        max_pool_connections=4 * PARALLEL_CALLS,
        retries={"mode": "standard", "total_max_attempts": 1},
        **more,
    )


class _Port:
    """A port on one service of AWS."""

    _service: ClassVar[str]
    _waited_for: ClassVar[bool] = False
    """True if callers wait for its few calls: short times, and one repeat."""

    def __init__(self, session: botocore.session.Session) -> None:
        self._session = session

    @cached_property
    def _client(self) -> Any:
        short = Config(connect_timeout=2, read_timeout=5, retries={"total_max_attempts": 2})
        return self._session.create_client(
            self._service, config=short if self._waited_for else None
        )


class Invoker(_Port):
    """Runs other functions of the deployment, asynchronously, through Lambda's API."""

    _service = "lambda"

    def __call__(self, role: str, event: dict[str, Any]) -> None:
        """Invokes the function whose name is in `<ROLE>_FUNCTION`."""
        self._client.invoke(
            FunctionName=os.environ[f"{role.upper()}_FUNCTION"],
            InvocationType="Event",
            Payload=msgspec.json.encode(event),
        )


class Calls:
    """Calls functions that are not ours, and waits for them."""

    def __init__(self, session: botocore.session.Session) -> None:
        self._session = session
        self._clients: dict[float, Any] = {}

    def __call__(self, arn: str, event: bytes, seconds: float) -> Called:
        client = self._clients.get(seconds)
        if client is None:
            # One try: a second one would run the function beside its first run.
            config = Config(
                connect_timeout=5, read_timeout=seconds, retries={"total_max_attempts": 1}
            )
            client = self._session.create_client("lambda", config=config)
            self._clients[seconds] = client
        begun = time.monotonic()
        try:
            told = client.invoke(FunctionName=arn, Payload=event)
            payload = told["Payload"].read()
        except ClientError as error:
            found = error.response
            lasting = found["ResponseMetadata"]["HTTPStatusCode"] >= 500
            return Called(error=found["Error"]["Code"], refused=not lasting, unknown=lasting)
        except (EndpointConnectionError, ConnectTimeoutError) as error:
            return Called(error=repr(error), refused=True)
        except (BotoCoreError, HTTPClientError) as error:
            return Called(error=repr(error), unknown=True)
        if time.monotonic() - begun > seconds:
            return Called(error=f"no answer within {seconds} s", unknown=True)
        answer = msgspec.json.decode(payload) if payload else None
        if "FunctionError" in told:
            return Called(error=_told(answer))
        return Called(answer=answer)


class Executions(_Port):
    """Starts executions of the retry schedules' state machine."""

    _service = "stepfunctions"

    def __call__(self, name: str, given: dict[str, Any]) -> None:
        """Starts the execution `name`; one that exists already is this very one."""
        with contextlib.suppress(self._client.exceptions.ExecutionAlreadyExists):
            self._client.start_execution(
                stateMachineArn=os.environ["RETRY_SCHEDULE_ARN"],
                name=name,
                input=msgspec.json.encode(given).decode(),
            )


class Posts:
    """Posts to endpoints; its modules are imported by the first post."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._poster: Any = None

    def __call__(self, url: str, headers: Mapping[str, str], body: bytes) -> Posted:
        if self._poster is None:
            from cirrusmq.webhooks.addresses import AddressPolicy
            from cirrusmq.webhooks.client import Poster

            networks = [ip_network(network) for network in self._settings.allowed_networks]
            self._poster = Poster(AddressPolicy(networks))
        outcome: Posted = self._poster.post(url, headers, body)
        return outcome


class Reports(_Port):
    """Reads from the bucket that the data pipeline writes to, or from a folder in its place."""

    _service = "s3"

    def __call__(self, path: str) -> bytes | None:
        folder = os.environ.get("REPORTS_FOLDER")
        if folder:
            file = Path(folder, path)
            return file.read_bytes() if file.is_file() else None
        try:
            answer = self._client.get_object(Bucket=os.environ["REPORTS_BUCKET"], Key=path)
        except self._client.exceptions.NoSuchKey:
            return None
        content: bytes = answer["Body"].read()
        return content


class FailureQueue(_Port):
    """The SQS queue to which Lambda sends its failures."""

    _service = "sqs"

    HIDDEN_SECONDS = 5
    """Longer than reading takes; messages that stay are to be seen, by the alarm too."""

    def receive(self) -> Sequence[GivenUp]:
        """Returns up to 10 messages, hidden for `HIDDEN_SECONDS`."""
        answer = self._client.receive_message(
            QueueUrl=os.environ["UNPROCESSED_QUEUE"],
            MaxNumberOfMessages=10,
            VisibilityTimeout=self.HIDDEN_SECONDS,
            MessageSystemAttributeNames=["ApproximateReceiveCount"],
        )
        return [
            GivenUp(
                handle=each["ReceiptHandle"],
                text=each["Body"],
                is_new=each["Attributes"]["ApproximateReceiveCount"] == "1",
            )
            for each in answer.get("Messages", [])
        ]

    def remove(self, handle: str) -> None:
        """Deletes a message from the queue."""
        self._client.delete_message(QueueUrl=os.environ["UNPROCESSED_QUEUE"], ReceiptHandle=handle)


class SecretDocument(_Port):
    """Reads the deployment's secret from Secrets Manager."""

    _service = "secretsmanager"
    _waited_for = True

    def __call__(self) -> str:
        answer = self._client.get_secret_value(SecretId=os.environ["SECRET_ARN"])
        document: str = answer["SecretString"]
        return document


class KeySealing(_Port):
    """Encrypts and decrypts with the deployment's key, through KMS."""

    _service = "kms"
    _waited_for = True

    CONTEXT = "cirrusmq:signing-key"
    """The policies allow both calls only with this context, which no table or bucket has."""

    def seal(self, key_id: str, secret: str) -> bytes:
        """Returns the encrypted secret. Raises Unavailable."""
        context = {self.CONTEXT: key_id}
        with _unavailable():
            sealed: bytes = self._client.encrypt(
                KeyId=os.environ["SEALING_KEY"],
                Plaintext=secret.encode(),
                EncryptionContext=context,
            )["CiphertextBlob"]
        return sealed

    def unseal(self, key_id: str, sealed: bytes) -> str:
        """Returns the secret that was sealed for the key of this id. Raises Unavailable."""
        context = {self.CONTEXT: key_id}
        with _unavailable():
            answer = self._client.decrypt(CiphertextBlob=sealed, EncryptionContext=context)
        secret: bytes = answer["Plaintext"]
        return secret.decode()


@contextlib.contextmanager
def _unavailable() -> Iterator[None]:
    try:
        yield
    except (BotoCoreError, ClientError, HTTPClientError) as error:
        raise Unavailable from error


class InParallel:
    """Calls in parallel threads, in the caller's context; a single one stays in its thread."""

    def __init__(self) -> None:
        self._threads = ThreadPoolExecutor(PARALLEL_CALLS, thread_name_prefix="store")

    def __call__(self, call: Callable[[A], B], values: Iterable[A]) -> Iterable[B]:
        return _run(self._threads, call, list(values))


def in_own_pool(call: Callable[[A], B], values: Iterable[A]) -> Iterable[B]:
    """Does what `InParallel` does, in threads of this call alone: for calls that may hang."""
    listed = list(values)
    with ThreadPoolExecutor(PARALLEL_CALLS, thread_name_prefix="own") as threads:
        return _run(threads, call, listed)


class ThreadWindow:
    """Calls in separate threads: one that hangs holds up no other."""

    def __init__(self, limit: int) -> None:
        self._threads = ThreadPoolExecutor(limit, thread_name_prefix="post")
        self._running: set[Future[Any]] = set()

    def __enter__(self) -> ThreadWindow:
        return self

    def __exit__(self, *raised: object) -> None:
        self._threads.shutdown()

    def start(self, call: Callable[[], Any]) -> None:
        """Begins a call, in the caller's context."""
        self._running.add(self._threads.submit(contextvars.copy_context().run, call))

    def wait(self, seconds: float) -> list[Any]:
        """Returns the results of calls that have ended; waits up to `seconds` for the next one."""
        ended, self._running = wait(self._running, seconds, FIRST_COMPLETED)
        return [each.result() for each in ended]


def _told(answer: Any) -> str:
    """Returns the error that a function ended with, as Lambda reports it."""
    if not isinstance(answer, dict):
        return "the function failed"
    told = f"{answer.get('errorType', 'error')}: {answer.get('errorMessage', '')}"
    return told[:_ERROR_CHARACTERS]


def _run(threads: ThreadPoolExecutor, call: Callable[[A], B], values: list[A]) -> list[B]:
    if len(values) <= 1:
        return [call(value) for value in values]
    # A context serves one thread at a time, so each call has one.
    started = [threads.submit(contextvars.copy_context().run, call, value) for value in values]
    return [each.result() for each in started]
