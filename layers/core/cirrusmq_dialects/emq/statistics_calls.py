"""Calls of the statistics service that have an answer here, and of all services."""

from __future__ import annotations

from typing import Any

from cirrusmq import __version__
from cirrusmq.base.limits import QUEUES_PER_ACCOUNT
from cirrusmq.queues.queues import list_queues
from cirrusmq_dialects.emq.asking import Asked
from cirrusmq_dialects.emq.errors import INVALID_ACTION, PERMISSION_DENIED, EmqError
from cirrusmq_dialects.emq.structs import of

_PAGE = 1_000


def get_service_version(asked: Asked) -> Any:
    """The version of this service."""
    major, minor, revision = map(int, __version__.split(".")[:3])
    return of.Version(
        major=major, minor=minor, revision=revision, date="", details=f"CirrusMQ {__version__}"
    )


def valid_client_version(asked: Asked) -> None:
    """Every client's version is good."""


def refuse(asked: Asked) -> None:
    """Refuses what has no place here."""
    reason = "is not supported: alarms and reports are the deployment's, metrics are at GET /rates"
    raise EmqError(INVALID_ACTION, f"{asked.progress.action} {reason}")


def get_user_quota(asked: Asked) -> Any:
    """The limits of the caller's account: requests a second, if the deployment has any; queues."""
    rate = asked.core.settings.account_requests_per_second or None
    return _quota(asked, rate, rate, QUEUES_PER_ACCOUNT)


def get_user_used_quota(asked: Asked) -> Any:
    """The queues of the caller's account, and the sums of their rates."""
    asked.require_whole_account()
    account = _own(asked)
    reads = writes = queues = 0
    cursor: str | None = None
    while True:
        page, cursor = list_queues(asked.core, account, "", _PAGE, cursor)
        queues += len(page)
        reads += sum(each.attributes.receive_rate or 0 for each in page)
        writes += sum(each.attributes.send_rate or 0 for each in page)
        if cursor is None:
            return _quota(asked, reads, writes, queues)


def _quota(asked: Asked, reads: int | None, writes: int | None, queues: int) -> Any:
    throughput = of.Throughput(readQps=reads, writeQps=writes)
    quota = of.UserQuota(throughput=throughput, queueNumber=queues)
    return of.QuotaOfDeveloper(developerId=_own(asked), userQuota=quota)


def _own(asked: Asked) -> str:
    """Returns the caller's account. Raises EmqError if the request names another one."""
    account = asked.caller.account
    if asked.request.developerId not in (None, "", account):
        raise EmqError(PERMISSION_DENIED, "developerId: must be the caller's account")
    return account
