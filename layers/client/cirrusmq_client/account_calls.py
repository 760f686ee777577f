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
    """Calls on keys, the audit, grants to the caller, reports, and the service itself."""

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
        """Creates an access key. Returns it with its secret, which is shown only here.

        The call is not repeated if its answer is lost, since that would create a second key.

        `account`: the caller's own if None. `scope`: the permitted calls, as
        `{"send": {"queues": ["orders"]}, "receive": "all"}`; None permits every call.
        `signing`: the secret may sign calls of other services' SDKs. `expires_at`: None for never.
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
        """Gives a key a new secret. Returns the key with the secret.

        `grace_seconds`: time for which the previous secret stays valid; None is a day. If the
        answer is lost, rotate again: that replaces the lost secret.
        """
        body = {} if grace_seconds is None else {"grace_seconds": grace_seconds}
        return cast(
            NewKey, (yield from self._post_once(f"/keys/{part(access_key_id)}/rotate", body))
        )

    @listed
    def list_keys(self, account: str | None = None) -> Entries[KeyState]:
        """Iterates over an account's keys, without their secrets. `account`: None is your own."""
        return self._pages("/keys", "keys", account=account)

    @driven
    def delete_key(self, access_key_id: str) -> Steps[None]:
        """Deletes a key."""
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
        """Iterates over the account's changes of the last 90 days, the newest first.

        Each change has the key that made it. `resource`: a queue, a topic or a key, including
        changes of its receivers, subscriptions and grants.
        """
        query = {
            "from": None if since is None else to_text(since),
            "to": None if until is None else to_text(until),
        }
        return self._pages("/audit", "changes", **query, key_id=key_id, resource=resource)

    @driven
    def list_granted(self) -> Steps[list[SharedResource]]:
        """Returns the grants of other accounts to the caller's."""
        return (yield from self._all("/grants", "grants"))

    @listed
    def list_consumers(self, source: str | Source) -> Entries[ConsumerState]:
        """Iterates over the access keys that received from a source within seven days.

        A text as `source` names a queue. For other accounts' keys only the account is shown. The
        time of a key's last receive may be five minutes old.
        """
        named = source_of(source)
        receiver = None if isinstance(named, Subscription) else named.receiver
        return self._pages(f"{named.path}/consumers", "consumers", receiver=receiver)

    @driven
    def show_rates(
        self, *sources: str | Source, topics: Sequence[str] = (), hours: int | None = None
    ) -> Steps[RatesOfLastHour]:
        """Returns counts of messages in the last hour, by intervals of five minutes.

        A text as a source names a queue. `hours`: the last 1 to 168 hours instead, by the hour.
        One call takes at most 50 sources and topics. The answer has queues first, then receivers,
        topics and subscriptions. The last minute may be missing.
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
        """Returns the account's newest finished bills, with all lines. Raises ReportNotFound."""
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
        """Returns the newest finished backlog report. Raises ReportNotFound."""
        when = None if at is None else to_text(at)
        return cast(BacklogReport, (yield from self._get("/reports/backlog", at=when)))

    @driven
    def health(self) -> Steps[Health]:
        """Returns the service's health and its time."""
        return (yield from self._learn_time())

    @driven
    def endpoints(self) -> Steps[Endpoints]:
        """Returns the functions' own URLs, which the library uses automatically."""
        return cast(Endpoints, (yield from self._get("/endpoints")))


def _name_of(source: Source) -> tuple[str, str]:
    """Returns the query's list to which a source belongs, and its name in the list."""
    if isinstance(source, Subscription):
        return "subscriptions", f"{source.topic}/{source.name}"
    if source.receiver is None:
        return "queues", source.name
    return "receivers", f"{source.name}/{source.receiver}"


def _joined(report: BillingReport, page: BillingReport) -> BillingReport:
    """Returns a report with its next page, which may begin with more lines of the last invoice."""
    known, more = report["invoices"], list(page["invoices"])
    if known and more and _place(known[-1]) == _place(more[0]):
        known[-1]["lines"] += more.pop(0)["lines"]
    known += more
    return report


def _place(invoice: Invoice) -> tuple[str, str, str | None]:
    """Returns the key of an account's invoice; open months have no number."""
    return invoice["month"], invoice["currency"], invoice["number"]
