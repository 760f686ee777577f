"""A user's own functions on one machine: Python callables in the place of Lambda functions.

    cirrusmq up --function shop=lambda_consumer:handler

A queue then names `shop` in its attribute `invoke`. The module is imported before the stack sets
its environment: AWS clients that the module makes during import use the user's own settings.
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
    """A user's function cannot be used; the text says why."""


def load_own(texts: Iterable[str]) -> dict[str, Handler]:
    """Imports callables given as `name=module:callable`. Returns them by name."""
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
    """Returns the description of a user's function for the stack."""
    return Function(
        name=name,
        folder=Path.cwd(),
        handler="",
        timeout_seconds=_TIMEOUT_SECONDS,
        memory_mb=128,
        environment={},
    )


def arns(own: Mapping[str, Handler]) -> str:
    """Returns the functions' ARNs for the template's parameter InvokeFunctions."""
    return ",".join(f"arn:aws:lambda:{REGION}:{ACCOUNT_ID}:function:{name}" for name in own)
