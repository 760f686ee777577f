"""A run's accounts, its own and a guest's, and the proxy on the way to the service."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import replace
from urllib.parse import urlsplit

from cirrusmq_local.verifying.journal import Journal
from cirrusmq_local.verifying.proxy import Proxy
from cirrusmq_local.verifying.remote import Service

LOST_SHARE, CUT_SHARE = 0.02, 0.01
_CONNECTION = {"http": 80, "https": 443}


def own_account(
    service: Service, account: str, *, admin: bool = False
) -> tuple[Service, str | None]:
    """A service with a key of a new account, and the key's id; without the right, as it is."""
    try:
        made = service.ask("POST", "/keys", {"account": account, "admin": admin})
    except ValueError:
        return service.as_other(service.authorization), None
    authorization = f"Bearer {made['access_key_id']}:{made['secret']}"
    return service.as_other(authorization), str(made["access_key_id"])


@contextlib.contextmanager
def guest_of(admin: Service, account: str, journal: Journal, proxy: Proxy) -> Iterator[Service]:
    """The service with a key of another account, which sends by grants."""
    number = journal.note({"kind": "remove", "prefix": account, "account": account})
    service, key = own_account(admin, account)
    through = through_of(service, proxy)
    through.account = account
    try:
        yield through
    finally:
        through.close()
        service.close()
        if not admin.reach.gone:
            admin.ask("DELETE", f"/keys/{key}")
            journal.done(number)


def remove(admin: Service, prefix: str, account: str) -> None:
    """Remove the queues, topics and keys that a run left."""
    service, key = own_account(admin, account)
    for kind in ("schedules", "topics", "queues"):
        for _ in range(2):  # a queue that others name is removed behind them
            for each in service.ask("GET", f"/{kind}?prefix={prefix}")[kind]:
                with contextlib.suppress(ValueError):
                    service.ask("DELETE", f"/{kind}/{each['name']}")
    service.close()
    if key is not None:
        # Also the keys that the run left.
        for each in admin.ask("GET", f"/keys?account={account}")["keys"]:
            admin.ask("DELETE", f"/keys/{each['access_key_id']}")


def proxy_of(url: str, seed: int) -> Proxy:
    """The proxy in front of a service, with the faults of a run."""
    parts = urlsplit(url)
    host, port = parts.hostname or "", parts.port or _CONNECTION[parts.scheme]
    return Proxy(host, port, seed=seed, lost=LOST_SHARE, cut=CUT_SHARE)


def through_of(service: Service, proxy: Proxy) -> Service:
    """The service by its proxy."""
    own = f"http://127.0.0.1:{proxy.port}"
    if service.url.startswith("https:"):
        return replace(service.as_other(service.authorization), proxy=own)
    return replace(service.as_other(service.authorization), url=own)
