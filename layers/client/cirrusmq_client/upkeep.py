"""A consumer's knowledge of its source, and the parts of the source that it makes."""

from __future__ import annotations

import logging
import time
from contextlib import suppress
from functools import partial

from cirrusmq_client.answers import QueueWithCounts, SubscriptionWithState
from cirrusmq_client.client import BaseClient
from cirrusmq_client.concurrency import THREADS, Concurrency
from cirrusmq_client.errors import (
    AlreadyExists,
    CirrusMQError,
    Forbidden,
    QueueNotFound,
    ReceiverNotFound,
    SubscriptionNotFound,
    TopicNotFound,
)
from cirrusmq_client.options import Options
from cirrusmq_client.results import Result, Retry, Wait
from cirrusmq_client.sources import Queue, Source, Subscription, Topic
from cirrusmq_client.steps import Step, Steps, driven

logger = logging.getLogger("cirrusmq_client")
MISSING = (QueueNotFound, ReceiverNotFound, SubscriptionNotFound, TopicNotFound)
AGAIN_SECONDS = 60.0
"""Life of the source's attributes after a read, and of a refusal."""
MISSING_SECONDS = 5.0
"""Maximum interval between two look-ups of a missing source."""
FAILURE_SECONDS = (1, 300)
"""The first and the longest wait after a failure, for a source without a retry policy."""
NAME_CHARACTERS = 64
MAX_RECEIVES = 1_000
"""`max_receives` for a dead-letter queue that is made here: the service's maximum."""


class Upkeep:
    """Reads a source's order and retry policy; makes missing parts if the options allow it."""

    def __init__(
        self,
        client: BaseClient,
        source: Source | Topic,
        options: Options,
        kind: Concurrency = THREADS,
    ) -> None:
        self._client, self._source, self._options = client, source, options
        self._run = kind.run
        self.ordered = True
        self.once = False
        """True if a message is a dead letter after one receive (`max_receives` of 1)."""
        self._has_policy = False
        self._read_at = self._refused_at = -AGAIN_SECONDS

    @driven
    def read(self) -> Steps[None]:
        """Reads if messages have an order, and if the source has a retry policy."""
        self._read_at = time.monotonic()
        source = self._source
        try:
            if isinstance(source, Subscription):
                show = partial(self._client.show_subscription, source.topic, source.name)
                subscription: SubscriptionWithState = yield show
                # A group always has a policy, by default or by its attributes.
                self.ordered, self._has_policy = bool(subscription.get("ordered")), True
            else:
                queue: QueueWithCounts = yield partial(self._client.show_queue, source.name)
                self.ordered, self._has_policy = queue["ordered"], queue["retry"] is not None
                letters = queue["dead_letter"]
                self.once = letters is not None and letters.get("max_receives") == 1
        except Forbidden:
            # A grant to receive does not show attributes. To keep the order does no harm, and
            # without waits a failing message would be delivered again and again.
            self.ordered, self._has_policy = True, False

    @driven
    def read_again(self) -> Steps[None]:
        """Reads the policy again after its life, because a failed message has to wait by it."""
        if time.monotonic() - self._read_at >= AGAIN_SECONDS:
            with suppress(Exception):
                yield self.read

    def timed(self, result: Result, receive_count: int) -> Result:
        """Returns the result; a `Retry` without a time is a `Wait` if the source has no policy."""
        if not isinstance(result, Retry) or result.after is not None or self._has_policy:
            return result
        first, longest = FAILURE_SECONDS
        # The exponent has a limit, since a count may be in the thousands.
        return Wait(min(longest, first * 2 ** min(receive_count - 1, 16)))

    @driven
    def make(self, missing: CirrusMQError, pause_seconds: float) -> Steps[bool]:
        """Makes a missing source. Returns False if the consumer has to wait for it."""
        why = missing
        creation = self._creation(missing)
        if creation is not None:
            try:
                with suppress(AlreadyExists):  # made by another member
                    yield creation
            except CirrusMQError as error:
                why = error
            else:
                logger.warning("%s was not there: it is made", self._source)
                return True
        line = "%s is waited for, looked for again in %.1f s: %s"
        logger.warning(line, self._source, pause_seconds, why)
        return False

    @driven
    def make_dead_letter_queue(self) -> Steps[bool]:
        """Makes a dead-letter queue for the source. Returns False if it still has none."""
        source, refused_at = self._source, self._refused_at
        foreign = isinstance(source, Queue) and ":" in source.name
        if foreign or not self._options.make_dead_letter_queue:
            return False
        if time.monotonic() - refused_at < AGAIN_SECONDS:
            return False
        try:
            name = yield from self._name_dead_letter_queue()
        except CirrusMQError as error:
            self._refused_at = time.monotonic()
            logger.warning("%s has no dead-letter queue, and gets none: %s", source, error)
            return False
        logger.warning("%s had no dead-letter queue: %s is its own now", source, name)
        return True

    def _creation(self, missing: CirrusMQError) -> Step | None:
        """Returns the call that makes the missing part, or None if it is not to be made."""
        client, source, attributes = self._client, self._source, self._options.create
        if attributes is None:
            return None
        if isinstance(source, Topic):
            return partial(client.create_topic, source.name, attributes)
        if isinstance(source, Subscription):
            if not isinstance(missing, SubscriptionNotFound):
                return None
            whole = {"protocol": "pull", **attributes}
            return partial(client.create_subscription, source.topic, source.name, whole)
        if source.receiver is None:
            return partial(client.create_queue, source.name, attributes)
        if not isinstance(missing, ReceiverNotFound):
            return None
        return partial(client.create_receiver, source.name, source.receiver, attributes)

    def _name_dead_letter_queue(self) -> Steps[str]:
        client, source = self._client, self._source
        if isinstance(source, Subscription):
            show = partial(client.show_subscription, source.topic, source.name)
            subscription: SubscriptionWithState = yield show
            if subscription["dead_letter_queue"] is not None:
                return subscription["dead_letter_queue"]
            name = f"dlq-{subscription['id']}"
            yield from self._make_queue(name)
            named = {"dead_letter_queue": name}
            yield partial(client.change_subscription, source.topic, source.name, named)
            return name
        queue: QueueWithCounts = yield partial(client.show_queue, source.name)
        if queue["dead_letter"] is not None:
            return queue["dead_letter"]["queue"]
        name = f"dlq-{queue['name']}"
        if len(name) > NAME_CHARACTERS:
            name = f"dlq-{queue['id']}"
        yield from self._make_queue(name)
        letters = {"dead_letter": {"queue": name, "max_receives": MAX_RECEIVES}}
        yield partial(client.change_queue, source.name, letters)
        return name

    def _make_queue(self, name: str) -> Steps[None]:
        with suppress(AlreadyExists):  # made earlier, and changed since
            yield partial(self._client.create_queue, name)
