"""The command line: `cirrusmq up`, and the commands of a running service."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any

import typer

from cirrusmq_client import CirrusMQError
from cirrusmq_local.commands.calls import hint_for
from cirrusmq_local.commands.console import fail

_COMMANDS: Mapping[str, str] = {
    "send": "messages:send",
    "receive": "messages:receive",
    "ask": "requests:ask",
    "reply": "requests:reply",
    "peek": "peeking:peek",
    "tail": "tailing:tail",
    "publish": "publishing:publish",
    "subscribe": "subscriptions:subscribe",
    "unsubscribe": "subscriptions:unsubscribe",
    "listen": "listen:listen",
    "shared": "grants:shared",
    "admin": "admin:admin",
    "changes": "changes:changes",
    "audit": "audit:audit",
    "bench": "bench:bench",
    "doctor": "doctor:doctor",
    "env": "env:env",
    "iam-policy": "iam_policy:iam_policy",
    "verify": "verify:verify",
    "wait": "background:wait",
    "down": "background:down",
    "up": "up:up",
}
"""Name -> its module in this package and the function in it, in the order of the help."""
_GROUPS: Mapping[str, str] = {
    "schedule": "schedules:schedules",
    "operation": "operations:operations",
    "report": "reports:reports",
    "data": "data:data",
    "key": "keys:keys",
    "secret": "secret:secret",
}
"""Name -> module and group of commands."""
_JOINED: Mapping[str, tuple[str, Sequence[str]]] = {
    "queue": (
        "Make, show and change queues.",
        (
            *("queues:queues", "queue_work:work", "receivers:receivers"),
            *("rates:of_queues", "consumers:of_queues", "grants:of_queues"),
        ),
    ),
    "topic": (
        "Make, show and change topics.",
        (
            *("topics:topics", "subscriptions:subscriptions", "publishing:matching"),
            *("rates:of_topics", "consumers:of_topics", "grants:of_topics"),
        ),
    ),
}
"""Name -> help, and the groups whose commands are joined in it."""


def make_app(only: str | None = None) -> typer.Typer:
    """Returns the command line.

    only: the command or group that is needed; the others are not loaded, which would take longer
    than most commands run. With another name, or None, all are loaded: for help and completion.
    """
    app = typer.Typer(
        name="cirrusmq",
        help="A message queue and topic service on one machine, and its command line.",
        no_args_is_help=True,
        pretty_exceptions_enable=False,
    )
    app.callback()(_group)
    known = only in {*_COMMANDS, *_GROUPS, *_JOINED}
    for name, (help_text, parts) in _JOINED.items():
        if name == only or not known:
            joined = typer.Typer(no_args_is_help=True, help=help_text)
            for part in parts:
                joined.add_typer(_load(part))
            app.add_typer(joined, name=name)
    for name, function in _COMMANDS.items():
        if name == only or not known:
            app.command(name)(_load(function))
    for name, group in _GROUPS.items():
        if name == only or not known:
            app.add_typer(_load(group), name=name)
    return app


def _load(path: str) -> Any:
    module, _, name = path.partition(":")
    return getattr(import_module(f"cirrusmq_local.commands.{module}"), name)


def _group() -> None:
    """CirrusMQ."""


def main() -> None:
    """Run the command line; exits with 0 for success, 1 for an error, 2 for wrong usage."""
    try:
        make_app(next(iter(sys.argv[1:]), None))()
    except CirrusMQError as error:
        fail(error.detail, hint_for(error))
    except KeyboardInterrupt:
        sys.exit(130)
    except BrokenPipeError:
        # The reader of our output has closed it, so nothing may be written at the exit either.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(0)
