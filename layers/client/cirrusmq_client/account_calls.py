"""Calls on keys and shared queues, reports, and the service itself."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Any, cast

from cirrusmq_client.answers import (
    BacklogReport,
    BillingReport,
    Health,
    KeyState,
    NewKey,
    SharedQueue,
)
from cirrusmq_client.calls import Calls
from cirrusmq_client.errors import KeyNotFound
from cirrusmq_client.sources import part
from cirrusmq_client.times import to_text


class AccountCalls(Calls):
    """Keys, grants to the caller, reports, health, and the calls of a stack on one machine."""

    def create_key(
        self, account: str | None = None, *, admin: bool = False, description: str | None = None
    ) -> NewKey:
        """Make an access key. Not repeated where its answer is lost: it would be a second key."""
        body: dict[str, Any] = {"admin": admin}
        if account is not None:
            body["account"] = account
        if description is not None:
            body["description"] = description
        return cast(NewKey, self._post_once("/keys", body))

    def list_keys(self, account: str | None = None) -> Iterator[KeyState]:
        """An account's keys, without their secrets."""
        return self._pages("/keys", "keys", account=account)

    def delete_key(self, access_key_id: str) -> None:
        """Delete a key."""
        self._delete(f"/keys/{part(access_key_id)}", KeyNotFound)

    def list_granted(self) -> list[SharedQueue]:
        """The grants of other accounts to the caller's."""
        return list(self._pages("/grants", "grants"))

    def report_billing(
        self, since: datetime | str | None = None, until: datetime | str | None = None
    ) -> BillingReport:
        """The newest finished bills of the account; ReportNotFound."""
        query = {
            "from": None if since is None else to_text(since),
            "to": None if until is None else to_text(until),
        }
        return cast(BillingReport, self._get("/reports/billing", **query))

    def report_backlog(self, at: datetime | str | None = None) -> BacklogReport:
        """The newest finished backlog report; ReportNotFound."""
        when = None if at is None else to_text(at)
        return cast(BacklogReport, self._get("/reports/backlog", at=when))

    def health(self) -> Health:
        """Whether the service answers, and its time."""
        return self._learn_time()
