"""The ports that every operation of the core is given, wired once in `bootstrap`."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeVar, cast

import msgspec
from msgspec import UnsetType, field

from cirrusmq.base import limits
from cirrusmq.base.errors import InvalidParameter, Unavailable
from cirrusmq.runtime.cache import Cache
from cirrusmq.runtime.clock import Clock
from cirrusmq.runtime.secret import Secret
from cirrusmq.runtime.store import Store

if TYPE_CHECKING:
    from cirrusmq.model.answer_sample import AnswerSample

A = TypeVar("A")
B = TypeVar("B")
M = TypeVar("M")


class Tables(msgspec.Struct, frozen=True, kw_only=True):
    """Names of the tables; empty where a function does not use one."""

    directory: str
    messages: str
    usage: str


class Posted(Protocol):
    """The outcome of a post."""

    @property
    def status(self) -> int | None:
        """The answer's status; None without an answer."""

    @property
    def error(self) -> str | None:
        """A status or a kind of error; None if the post was accepted."""

    @property
    def retry_after_seconds(self) -> float | None:
        """Real seconds after which the subscriber wants the next attempt, or None."""

    @property
    def sample(self) -> AnswerSample | None:
        """The beginning of an answer that did not accept it; None without such an answer."""


class Bodies(Protocol):
    """The bucket with the messages of large sends, under keys that only this service makes.

    Every method raises Unavailable if the bucket gives no answer in time.
    """

    def put(self, key: str, data: bytes) -> None:
        """Writes an object, also over an older one; it is durable when this returns."""

    def get(self, key: str, start: int = 0, end: int | None = None) -> bytes | None:
        """Returns its bytes from `start` to before `end` or its end, or None without an object."""

    def copy(self, source: str, key: str) -> bool:
        """Copies it to another key, or onto itself, which restarts its life. False if missing."""


class Window(Protocol):
    """Calls in parallel whose results come as each ends; leaving it waits for all."""

    def __enter__(self) -> Window: ...

    def __exit__(self, *raised: object) -> None: ...

    def start(self, call: Callable[[], Any]) -> None:
        """Begins a call in the window."""

    def wait(self, seconds: float) -> list[Any]:
        """Returns the results of calls that have ended; waits up to `seconds` for the next one."""


class GivenUp(msgspec.Struct, frozen=True):
    """Lambda's message about an event that failed for good."""

    handle: str
    """The handle that removes it."""
    text: str
    """JSON, as Lambda writes it."""
    is_new: bool
    """True if nobody has read it before."""


class Unprocessed(Protocol):
    """The queue of events that failed for good."""

    def receive(self) -> Sequence[GivenUp]:
        """Returns a few of them, which nobody else gets for some seconds."""

    def remove(self, handle: str) -> None:
        """Removes an event that is dealt with."""


class Called(msgspec.Struct, frozen=True, kw_only=True):
    """The outcome of a call of a function that is not ours."""

    answer: Any = None
    error: str | None = None
    """Why there is no answer; None if there is one."""
    refused: bool = False
    """True if it has not run: its concurrency is used up or it may not be called."""
    unknown: bool = False
    """True if it may still run."""


class Sealing(Protocol):
    """Encrypts secrets of signing keys so that they can be read again; bound to the key's id."""

    def seal(self, key_id: str, secret: str) -> bytes:
        """Returns the encrypted secret. Raises Unavailable."""

    def unseal(self, key_id: str, sealed: bytes) -> str:
        """Returns the secret that was sealed for the key of this id. Raises Unavailable."""


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """Parameters of the deployment."""

    confirm_endpoints: bool = True
    """True if a new HTTP endpoint must confirm before it gets anything."""
    http_endpoints: bool = False
    """True if endpoints may be `http:` too."""
    allowed_networks: tuple[str, ...] = ()
    """Networks, as CIDR, that endpoints may be in though they are not global."""
    public_url: str = ""
    """The service's URL as seen from outside, for confirmations."""
    invoke_functions: Mapping[str, str] = {}
    """The functions that queues may name, with their ARNs."""
    functions_by_managers: bool = False
    """True if a key that manages a queue or topic may name them; False: admin keys alone."""
    account_requests_per_second: int = 0
    """Calls a second above which an account gets an error; 0 is no limit."""
    account_waiting_receives: int = 0
    """Receives of one account that may wait at the same time; 0 is no limit."""
    admin_by_invocation: bool = False
    """True if admin keys are refused unless the function was invoked with IAM's own right."""
    slow_pushes: int = 0
    """Invocations that post to slow URLs at the same time, of all accounts; 0 is no limit."""
    workers: int = 0
    """Workers that call functions at the same time, of all accounts; 0 is no limit."""
    offers_in_process: bool = False
    """True if clients may call the tables from their own processes."""
    in_process: bool = False
    """True in a client's process: the core has the parcels of plain queues and the records of
    their batches, and leaves dead letters, chores and objects to the service."""
    faster_looks: float = 1.0
    """Times as many looks of a waiting receive as a poll of the service has, for as many units."""
    sqs_partitions: int = 0
    """Partitions of a standard queue that SQS's call makes; 0: as many as any other queue has."""
    bodies_in_s3_from: int = 0
    """Packed bytes of a send from which its messages are in an object; 0 means never."""

    @property
    def batch_bytes(self) -> int:
        """Bytes that the messages of a send may have together, and so one alone."""
        return limits.BATCH_BYTES if self.bodies_in_s3_from else limits.TABLE_BATCH_BYTES

    @property
    def messages_request_bytes(self) -> int:
        """Bytes of JSON that a request with messages may have."""
        return limits.MESSAGES_REQUEST_BYTES if self.bodies_in_s3_from else limits.REQUEST_BYTES

    def check_message_bytes(self, given: int | UnsetType) -> None:
        """Raises InvalidParameter if this deployment takes no messages of the given size."""
        if not isinstance(given, UnsetType) and given > self.batch_bytes:
            raise InvalidParameter(
                "max_message_bytes",
                f"must be an integer from {limits.MESSAGE_BYTES[0]:,} to {self.batch_bytes:,}:"
                " this deployment keeps no messages in S3 (BodiesInS3From is 0)",
            )


class LeftToService(Unavailable):
    """A client's own process may not do this; the service does."""


class Core(msgspec.Struct, frozen=True, kw_only=True):
    """The ports of the domain: store, clock, randomness, and the environment's memories."""

    store: Store
    tables: Tables
    clock: Clock
    random: random.Random
    cache: Cache
    slow_cache: Cache
    """For values that may be a minute old."""
    secret: Secret
    """Keys that only this deployment knows: of cursors, of receipts' nonces, of posts."""
    invoke: Callable[[str, dict[str, Any]], None]
    """Runs a function of the deployment later: its role (`replay`) and its event."""
    in_parallel: Callable[[Callable[[A], B], Iterable[A]], Iterable[B]]
    """`map`, with the calls in parallel if the environment has threads."""
    in_own_pool: Callable[[Callable[[A], B], Iterable[A]], Iterable[B]]
    """Like `in_parallel`, in threads of this call alone: for calls that may hang."""
    window: Callable[[int], Window]
    """For calls that may hang: a number of them in parallel, and nothing else waits for them."""
    start_execution: Callable[[str, dict[str, Any]], None]
    """Starts an execution of the retry schedules' state machine: its name and its input."""
    post: Callable[[str, Mapping[str, str], bytes], Posted]
    """Posts to an endpoint: its URL, headers, body."""
    call: Callable[[str, bytes, float], Called]
    """Calls a function that is not ours: its ARN, its event, and how many seconds to wait."""
    read_report: Callable[[str], bytes | None]
    """Returns a file of the data pipeline's output, by its path there, or None without one."""
    unprocessed: Unprocessed
    """Events of the stream and invocations that failed for good in Lambda."""
    bodies: Bodies
    """The bucket for the messages of large sends."""
    sealing: Sealing
    """Encrypts the secrets of signing keys."""
    real_seconds: Callable[[], int] = lambda: int(time.time())
    """The real time in epoch seconds, for signatures that others check."""
    settings: Settings = Settings()
    memories: dict[type, Any] = field(default_factory=dict)
    """The environment's memories, an object for each class (`memory`)."""

    def memory(self, kind: type[M]) -> M:
        """Returns the environment's one object of a class, made at first use."""
        found: M | None = self.memories.get(kind)
        return cast("M", self.memories.setdefault(kind, kind())) if found is None else found

    def now_ms(self) -> int:
        """Returns the service's time in milliseconds since the epoch."""
        return self.clock.now_ms()

    def random_bytes(self, count: int) -> bytes:
        """Returns `count` random bytes."""
        return self.random.getrandbits(8 * count).to_bytes(count, "big")

    @property
    def skew_ms(self) -> int:
        """How far another function's clock may be from this one; one machine has one clock."""
        return limits.CLOCK_SKEW_MS if self.cache.lag_ms else 0

    def lapsed_ms(self) -> int:
        """Returns a time such that a lease that ended before it has ended by every clock."""
        return self.now_ms() - int(limits.CLOCK_SKEW_MS * self.clock.scale)

    def wait_past(self, moment_ms: int) -> None:
        """Lets time pass until every clock of the deployment shows more than `moment_ms`.

        this clock   floor = 12:00:00.000 ──── waits ────> 12:00:02.001, answers
        a sender's   11:59:58.000 ..................... > 12:00:00.001, later than the floor
        """
        self.wait_until(moment_ms + self.skew_ms + 1)

    def floor_ms(self) -> int:
        """Returns a moment later than any that a clock of the deployment has shown before."""
        self.wait_past(self.now_ms())
        return self.now_ms()

    def wait_until(self, moment_ms: int) -> None:
        """Lets time pass until the clock shows at least `moment_ms`."""
        while (left_ms := moment_ms - self.now_ms()) > 0:
            self.clock.sleep(left_ms / 1000)
