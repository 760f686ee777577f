"""Calls on keys, the audit and shared queues, reports, and the service itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, cast

from cirrusmq_client.answers import (
    BacklogReport,
    BillingReport,
    ChangeState,
    ConsumerState,
    Endpoints,
    Health,
    Invoice,
    KeyState,
    NewKey,
    RatesOfLastHour,
    SharedResource,
)
from cirrusmq_client.calls import Calls
from cirrusmq_client.checks import texts
from cirrusmq_client.errors import KeyNotFound
from cirrusmq_client.sources import Source, Subscription, part, source_of
from cirrusmq_client.steps import Entries, Steps, driven, listed
from cirrusmq_client.times import to_text


class AccountCalls(Calls):
    """Keys, the audit, grants to the caller, reports, health, the calls of a local stack."""

    @driven
    def create_key(
        self,
        account: str | None = None,
        *,
        admin: bool = False,
        scope: Mapping[str, Any] | None = None,
        manages_keys: bool = False,
        signing: bool = False,
        expires_at: datetime | str | None = None,
        description: str | None = None,
    ) -> Steps[NewKey]:
        """Make an access key. Not repeated where its answer is lost: it would be a second key.

        `scope`: `{"send": {"queues": ["orders"]}, "receive": "all"}`, without one every call.
        `signing`: for the SDKs of other services, which sign their calls with the secret.
        """
        given = {
            "account": account,
            "scope": scope,
            "expires_at": None if expires_at is None else to_text(expires_at),
            "description": description,
        }
        body: dict[str, Any] = {"admin": admin, "manages_keys": manages_keys, "signing": signing}
        body |= {name: value for name, value in given.items() if value is not None}
        return cast(NewKey, (yield from self._post_once("/keys", body)))

    @driven
    def rotate_key(self, access_key_id: str, grace_seconds: int | None = None) -> Steps[NewKey]:
        """Give a key a new secret; the one before is good as well, a day unless told otherwise.

        Where the answer is lost, another rotation replaces the secret that was lost with it.
        """
        body = {} if grace_seconds is None else {"grace_seconds": grace_seconds}
        return cast(
            NewKey, (yield from self._post_once(f"/keys/{part(access_key_id)}/rotate", body))
        )

    @listed
    def list_keys(self, account: str | None = None) -> Entries[KeyState]:
        """An account's keys, without their secrets."""
        return self._pages("/keys", "keys", account=account)

    @driven
    def delete_key(self, access_key_id: str) -> Steps[None]:
        """Delete a key."""
        yield from self._delete(f"/keys/{part(access_key_id)}", KeyNotFound)

    @listed
    def list_changes(
        self,
        since: datetime | str | None = None,
        until: datetime | str | None = None,
        *,
        key_id: str | None = None,
        resource: str | None = None,
    ) -> Entries[ChangeState]:
        """The account's changes of the last 90 days and the keys that made them, newest first.

        `resource`: a queue, a topic or a key; changes of what is below it are found as well.
        """
        query = {
            "from": None if since is None else to_text(since),
            "to": None if until is None else to_text(until),
        }
        return self._pages("/audit", "changes", **query, key_id=key_id, resource=resource)

    @driven
    def list_granted(self) -> Steps[list[SharedResource]]:
        """The grants of other accounts to the caller's."""
        return (yield from self._all("/grants", "grants"))

    @listed
    def list_consumers(self, source: str | Source) -> Entries[ConsumerState]:
        """The access keys that received from a source within seven days; a text: a queue.

        Of other accounts' keys the account alone is told. A receive of the last five minutes may be
        missing where the same key received before.
        """
        named = source_of(source)
        receiver = None if isinstance(named, Subscription) else named.receiver
        return self._pages(f"{named.path}/consumers", "consumers", receiver=receiver)

    @driven
    def show_rates(
        self, *sources: str | Source, topics: Sequence[str] = (), hours: int | None = None
    ) -> Steps[RatesOfLastHour]:
        """How many messages came and went in the last hour, every five minutes; a text: a queue.

        `hours`: by the hour instead, in the last 1 to 168 of them.
        At most 50 sources and topics, read by one call; the answer has queues first, then
        receivers, topics and subscriptions. A minute ago may be missing yet.
        """
        named: dict[str, list[str]] = {"topics": texts("topics", topics)}
        for source in map(source_of, sources):
            kind, name = _name_of(source)
            named.setdefault(kind, []).append(name)
        query = {kind: ",".join(names) for kind, names in named.items() if names}
        return cast(RatesOfLastHour, (yield from self._get("/rates", **query, hours=hours)))

    @driven
    def report_billing(
        self, since: datetime | str | None = None, until: datetime | str | None = None
    ) -> Steps[BillingReport]:
        """The newest finished bills of the account, with all lines; ReportNotFound."""
        times = {"from": since, "to": until}
        wanted: dict[str, Any] | None = {
            name: to_text(time) for name, time in times.items() if time is not None
        }
        report: BillingReport | None = None
        while wanted is not None:
            page, wanted = yield from self._page("/reports/billing", wanted)
            report = page if report is None else _joined(report, page)
        assert report is not None
        report.pop("cursor", None)
        return report

    @driven
    def report_backlog(self, at: datetime | str | None = None) -> Steps[BacklogReport]:
        """The newest finished backlog report; ReportNotFound."""
        when = None if at is None else to_text(at)
        return cast(BacklogReport, (yield from self._get("/reports/backlog", at=when)))

    @driven
    def health(self) -> Steps[Health]:
        """Whether the service answers, and its time."""
        return (yield from self._learn_time())

    @driven
    def endpoints(self) -> Steps[Endpoints]:
        """The URLs beside the service's own, which the library takes by itself."""
        return cast(Endpoints, (yield from self._get("/endpoints")))


def _name_of(source: Source) -> tuple[str, str]:
    """The list of a query that a source belongs to, and its name there."""
    if isinstance(source, Subscription):
        return "subscriptions", f"{source.topic}/{source.name}"
    if source.receiver is None:
        return "queues", source.name
    return "receivers", f"{source.name}/{source.receiver}"


def _joined(report: BillingReport, page: BillingReport) -> BillingReport:
    """A report with its next page, which may begin with more lines of the last invoice."""
    known, more = report["invoices"], list(page["invoices"])
    if known and more and _place(known[-1]) == _place(more[0]):
        known[-1]["lines"] += more.pop(0)["lines"]
    known += more
    return report


def _place(invoice: Invoice) -> tuple[str, str, str | None]:
    """What tells an account's invoices apart; open months have no number."""
    return invoice["month"], invoice["currency"], invoice["number"]
