"""Refusals of the core by the names that a dialect has for the parameters."""

from __future__ import annotations

import re
from collections.abc import Mapping

from cirrusmq.base.errors import CirrusMQError

_STEP = re.compile(r"[.\[]")


def renamed(error: CirrusMQError, names: Mapping[str, str]) -> tuple[str | None, str]:
    """Returns the dialect's name of the parameter that is refused, and the reason without a name.

    names: the dialect's names by the core's. A member has its parameter's name if it has none, and
    a message's place is left out. Returns None for the name if the dialect has none: then the
    reason is the core's whole text.
    """
    parameter = error.parameter or ""
    own = parameter.partition("].")[2] or parameter
    name = names.get(own) or names.get(_STEP.split(own, maxsplit=1)[0])
    return name, error.detail.removeprefix(f"{parameter}: ") if name else error.detail
