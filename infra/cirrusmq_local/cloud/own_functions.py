"""Functions that a user brings along, in the place of those in an account: Python callables.

    cirrusmq up --function shop=lambda_consumer:handler

A queue then names `shop` in its attribute `invoke`. The module is imported before the stack takes
its environment over: clients of AWS that it makes while it is imported are those of its user.
"""

from __future__ import annotations

import importlib
import re
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path

from cirrusmq_local.cloud.cloudformation import ACCOUNT_ID
from cirrusmq_local.cloud.invocation import Handler
from cirrusmq_local.cloud.template import REGION, Function

_GIVEN = re.compile(r"(?P<name>[A-Za-z0-9_-]{1,64})=(?P<module>[\w.]+):(?P<callable>\w+)")
_TIMEOUT_SECONDS = 900


class OwnFunctionError(Exception):
    """A function that was given cannot be used; the text says why."""


def load_own(texts: Iterable[str]) -> dict[str, Handler]:
    """The callables of `name=module:callable`, by name; modules of the working folder, too."""
    found: dict[str, Handler] = {}
    for text in texts:
        match = _GIVEN.fullmatch(text)
        if match is None:
            raise OwnFunctionError(f"{text}: must be name=module:callable")
        if match["name"] in found:
            raise OwnFunctionError(f"{text}: there are two functions {match['name']}")
        if str(Path.cwd()) not in sys.path:
            sys.path.insert(0, str(Path.cwd()))
        try:
            handler = getattr(importlib.import_module(match["module"]), match["callable"])
        except (ImportError, AttributeError) as error:
            raise OwnFunctionError(f"{text}: {error}") from error
        if not callable(handler):
            raise OwnFunctionError(f"{text}: {match['callable']} cannot be called")
        found[match["name"]] = handler
    return found


def as_function(name: str) -> Function:
    """A user's function as the stack keeps it."""
    return Function(
        name=name,
        folder=Path.cwd(),
        handler="",
        timeout_seconds=_TIMEOUT_SECONDS,
        memory_mb=128,
        environment={},
    )


def arns(own: Mapping[str, Handler]) -> str:
    """Their ARNs, as the template's parameter InvokeFunctions takes them."""
    return ",".join(f"arn:aws:lambda:{REGION}:{ACCOUNT_ID}:function:{name}" for name in own)
