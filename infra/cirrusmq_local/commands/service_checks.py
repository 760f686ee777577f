"""Checks of a service: URL, key and clock."""

from __future__ import annotations

import errno
import socket
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import httpx

from cirrusmq_client import Connection
from cirrusmq_client.errors import CertificateRefused, NotConfigured
from cirrusmq_client.tls import not_reached, proxy_of, trusted
from cirrusmq_local.commands.findings import Finding, ok, wrong

SECONDS = 5.0
FAR_OFF_SECONDS = 60.0
"""Maximum difference of clocks: signed or dated calls are rejected if it is some minutes."""


@dataclass(frozen=True)
class Health:
    """The answer of a service; `time` is None if no service answered."""

    finding: Finding
    time: datetime | None = None
    asked: float = 0.0
    """Time on this machine's clock, half way between the call and the answer."""
    time_scale: float = 1.0


def check_port(port: int) -> Iterator[Finding]:
    """Check that a service could be started at a port of this machine."""
    with socket.socket() as trying:
        trying.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            trying.bind(("127.0.0.1", port))
        except OSError as error:
            taken = error.errno == errno.EADDRINUSE
            reason = "is taken by another program" if taken else f"cannot be used: {error.strerror}"
            yield wrong(
                "port", f"{port} {reason}: cirrusmq up --port <another>, make up PORT=<another>"
            )
        else:
            yield ok("port", f"{port} is free")


def check_service(connection: Connection) -> Health:
    """Check that a service answers at the URL."""
    url = connection.url.rstrip("/")
    began = time.time()
    try:
        answer = _get(connection, "/health")
    except NotConfigured as error:
        return Health(wrong("service", error.detail))
    except (httpx.InvalidURL, httpx.UnsupportedProtocol):
        return Health(wrong("service", f"{url} is not a URL: it looks like http://127.0.0.1:8080"))
    except (httpx.ConnectError, httpx.ConnectTimeout) as error:
        reason = not_reached(url, error)
        hint = "" if isinstance(reason, CertificateRefused) else ": start it with: cirrusmq up"
        return Health(wrong("service", reason.detail + hint))
    except httpx.TimeoutException:
        return Health(
            wrong("service", f"{url} takes calls and does not answer: end it and start it anew")
        )
    except httpx.HTTPError:
        return Health(_other_program(url))
    asked = (began + time.time()) / 2
    if answer.status_code in (429, 503):
        return Health(wrong("service", f"{url} answers {answer.status_code}: wait a moment"))
    try:
        held: dict[str, Any] = answer.json()
        told, version = datetime.fromisoformat(held["time"]), held["version"]
        scale = float(held["time_scale"])
    except (ValueError, LookupError, TypeError):
        return Health(_other_program(url))
    finding = ok("service", f"{url} answers, version {version}")
    if held.get("status") == "degraded":
        finding = wrong("service", f"{url} answers, and lost data: {held.get('detail')}")
    return Health(finding, told, asked, scale)


def _get(
    connection: Connection, path: str, headers: Mapping[str, str] | None = None
) -> httpx.Response:
    """Get a path as the library does: by the same proxy, with the same authorities."""
    return httpx.get(
        connection.url.rstrip("/") + path,
        headers=headers,
        timeout=SECONDS,
        trust_env=False,
        verify=trusted(connection),
        proxy=proxy_of(connection),
    )


def check_clock(health: Health) -> Finding:
    """Check that this machine's clock is near the service's."""
    assert health.time is not None
    if health.time_scale != 1:
        return ok("clock", f"the service's time runs {health.time_scale:g} times as fast, as asked")
    behind = health.time.timestamp() - health.asked
    if abs(behind) < FAR_OFF_SECONDS:
        return ok("clock", f"{abs(behind):.1f} s from the service's")
    here = datetime.fromtimestamp(health.asked, UTC).isoformat(timespec="seconds")
    which = "behind" if behind > 0 else "ahead of"
    return wrong(
        "clock",
        f"this machine's, {here}, is {abs(behind):,.0f} s {which} the service's: let NTP set it; a"
        " service of this machine that once ran faster goes on from its time, but with another"
        " --data",
    )


def check_key(connection: Connection) -> Finding:
    """Check that the service accepts the access key."""
    try:
        answer = _get(connection, "/queues?limit=1", {"authorization": connection.authorization})
    except (httpx.HTTPError, UnicodeError) as error:
        return wrong("key", f"cannot be tried: {error}")
    try:
        detail = str(answer.json().get("detail", ""))
    except (ValueError, AttributeError):
        detail = ""
    named = connection.access_key_id
    if answer.is_success:
        return ok("key", f"{named} is accepted")
    if answer.status_code == 403:
        return ok("key", f"{named} is accepted; its scope does not let it list queues")
    if answer.status_code == 401:
        return wrong("key", f"{named} is refused: {detail.rstrip('.') or 'it is wrong'}; {_REMEDY}")
    return wrong("key", f"{named}: answered {answer.status_code}, {detail or 'without a reason'}")


_REMEDY = (
    "take the one of the service's connection.json, or have a new one made: cirrusmq key create"
)


def _other_program(url: str) -> Finding:
    return wrong(
        "service",
        f"another program answers at {url}: name the service's URL, or start it at another port:"
        " cirrusmq up --port <another>",
    )
