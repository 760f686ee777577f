"""`cirrusmq audit`: the log of changes and of rejected keys, on this machine."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any

import typer

from cirrusmq_local.commands.arguments import DATA, Json, read_time
from cirrusmq_local.commands.console import fail, print_json, show

_SERVICE = "audit"
_LOG = "functions.log"
_SHOWN = ("at", "account", "key_id", "route", "resource", "code", "source")
_POLL_SECONDS = 0.5


def audit(
    account: Annotated[str | None, typer.Option(help="Only calls of this account.")] = None,
    code: Annotated[
        str | None, typer.Option(help="Only this outcome: Ok, Forbidden, Unauthenticated …")
    ] = None,
    since: Annotated[
        str | None, typer.Option(help="Only calls at or after this time: 2026-11-20T08:00:00Z.")
    ] = None,
    follow: Annotated[
        bool, typer.Option("--follow", "-f", help="Continue with new lines until Ctrl-C.")
    ] = False,
    as_json: Json = False,
    data: Annotated[Path, typer.Option(help="Folder of the service.", readable=False)] = DATA,
) -> None:
    """Show calls that changed something, and calls with a rejected key.

    In an account these lines are in the functions' log: infra/manual/access.md has the query.
    """
    log = data / _LOG
    if not log.exists():
        fail(f"{log} is not there: start the service with: cirrusmq up")
    from_time = None if since is None else read_time("--since", since)
    for entry in _entries(log, follow=follow):
        wanted = (
            (account is None or entry.get("account") == account)
            and (code is None or entry.get("code") == code)
            and (from_time is None or datetime.fromisoformat(entry["at"]) >= from_time)
        )
        if wanted and as_json:
            print_json({name: entry.get(name) for name in (*_SHOWN, "request_id")})
        elif wanted:
            print("  ".join(show(entry.get(name)) or "-" for name in _SHOWN), flush=True)


def _entries(log: Path, *, follow: bool) -> Iterator[dict[str, Any]]:
    """Yield the audit's lines of both log files, the older file first."""
    for line in _lines(log, follow=follow):
        if f'"{_SERVICE}"' not in line:
            continue
        try:
            entry = json.loads(line)
        except ValueError:
            continue  # torn by a full disk
        if isinstance(entry, dict) and entry.get("service") == _SERVICE and "at" in entry:
            yield entry


def _lines(log: Path, *, follow: bool) -> Iterator[str]:
    """Yield whole lines. A full file is renamed to `<name>.1`, and a new one replaces it."""
    older = log.with_name(log.name + ".1")
    if older.exists():
        yield from older.read_text("utf-8", "replace").splitlines()
    file = log.open(encoding="utf-8", errors="replace")
    begun = ""
    while True:
        text = file.readline()
        begun += text
        if begun.endswith("\n"):
            yield begun
            begun = ""
        elif not text and not follow:
            return
        elif not text:
            time.sleep(_POLL_SECONDS)
            if log.exists() and log.stat().st_ino != _inode(file.fileno()):
                rest = file.readline()
                if not rest:
                    file.close()
                    file = log.open(encoding="utf-8", errors="replace")
                begun += rest


def _inode(descriptor: int) -> int:
    import os

    return os.fstat(descriptor).st_ino
