"""Calls on keys and shared queues, reports, and the service itself."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any, cast

from cirrusmq_client.answers import (
    BacklogReport,
    BillingReport,
    Endpoints,
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
        self,
        account: str | None = None,
        *,
        admin: bool = False,
        scope: Mapping[str, Any] | None = None,
        manages_keys: bool = False,
        expires_at: datetime | str | None = None,
        description: str | None = None,
    ) -> NewKey:
        """Make an access key. Not repeated where its answer is lost: it would be a second key.

        `scope`: `{"send": {"queues": ["orders"]}, "receive": "all"}`, without one every call.
        """
        given = {
            "account": account,
            "scope": scope,
            "expires_at": None if expires_at is None else to_text(expires_at),
            "description": description,
        }
        body: dict[str, Any] = {"admin": admin, "manages_keys": manages_keys}
        body |= {name: value for name, value in given.items() if value is not None}
        return cast(NewKey, self._post_once("/keys", body))

    def rotate_key(self, access_key_id: str, grace_seconds: int | None = None) -> NewKey:
        """Give a key a new secret; the one before is good as well, a day unless told otherwise.

        Where the answer is lost, another rotation replaces the secret that was lost with it.
        """
        body = {} if grace_seconds is None else {"grace_seconds": grace_seconds}
        return cast(NewKey, self._post_once(f"/keys/{part(access_key_id)}/rotate", body))

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

    def endpoints(self) -> Endpoints:
        """The URLs beside the service's own, which the library takes by itself."""
        return cast(Endpoints, self._get("/endpoints"))
