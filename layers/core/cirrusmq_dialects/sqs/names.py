"""Names, URLs and ARNs of queues: SQS's, and the core's for the same queue.

`orders.fifo` is the ordered queue of this name, or an older one `orders_fifo`. An account that is a
number, as in URLs of the service that a program comes from, is the caller's own: no account here
has such a name.
"""

from __future__ import annotations

import re

from cirrusmq.base.errors import InvalidParameter
from cirrusmq.base.names import ACCOUNT_NAME, FIFO, QUEUE_NAME, check_name
from cirrusmq.model.queue import Queue
from cirrusmq_dialects.fifo_names import shown_fifo
from cirrusmq_dialects.sqs.errors import NO_QUEUE, SqsError, invalid

_NAME = re.compile(r"(?=.{1,80}\Z)[A-Za-z0-9_-]+(?:\.fifo)?", re.ASCII)
_NUMBER = re.compile(r"[0-9]+", re.ASCII)


def checked_name(name: str) -> str:
    """Returns the name for a new queue, checked. Raises SqsError InvalidParameterValue."""
    if not _NAME.fullmatch(name):
        raise SqsError(
            "InvalidParameterValue",
            "Can only include alphanumeric characters, hyphens, or underscores. 1 to 80 in length",
        )
    try:
        return check_name("QueueName", name, QUEUE_NAME)
    except InvalidParameter as error:
        raise SqsError("InvalidParameterValue", error.detail) from error


def check_type(name: str, queue: Queue) -> None:
    """Raises SqsError if a FIFO queue's name, or its URL, has found a standard queue."""
    if name.endswith(FIFO) and not queue.attributes.ordered:
        raise SqsError("QueueDoesNotExist", NO_QUEUE)


def shown_name(queue: Queue) -> str:
    """SQS's name of a queue."""
    return shown_fifo(queue.name) if queue.attributes.ordered else queue.name


def queue_url(base_url: str, queue: Queue) -> str:
    """The URL by which programs name a queue: of the host that they call."""
    return f"{base_url}/{queue.account}/{shown_name(queue)}"


def arn(region: str, account: str, name: str) -> str:
    """The ARN of a queue, in the region that the caller signs for."""
    return f"arn:aws:sqs:{region}:{account}:{name}"


def ref_in_url(url: str, account: str) -> str:
    """The queue in a URL, to be `resolved`; its host is not looked at."""
    parts = [part for part in url.partition("?")[0].split("/") if part]
    if not parts:
        raise SqsError("InvalidAddress", f"The address {url[:200]} is not valid for this endpoint.")
    return ref(parts[-1], parts[-2] if len(parts) > 1 else None, account)


def ref_in_arn(parameter: str, text: str, account: str) -> str:
    """Returns the queue in an ARN, to be `resolved`. Raises SqsError InvalidParameterValue."""
    parts = text.split(":")
    if len(parts) != 6 or parts[:3] != ["arn", "aws", "sqs"]:
        raise invalid(parameter, text, "Must be the ARN of a queue.")
    return ref(parts[5], parts[4], account)


def ref(name: str, owner: str | None, account: str) -> str:
    """Returns a queue, to be `resolved`. Raises SqsError if no queue can have the name."""
    if not _NAME.fullmatch(name):
        raise SqsError("QueueDoesNotExist", NO_QUEUE)
    try:
        check_name("queue", name, QUEUE_NAME)
        if owner is None or owner == account or _NUMBER.fullmatch(owner):
            return name
        return f"{check_name('account', owner, ACCOUNT_NAME)}:{name}"
    except InvalidParameter as error:
        raise SqsError("QueueDoesNotExist", NO_QUEUE) from error


def native_prefix(prefix: str) -> str:
    """The beginning of the core's names of queues whose SQS names begin so."""
    return prefix.partition(".")[0]
