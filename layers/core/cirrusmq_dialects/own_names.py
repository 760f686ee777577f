"""Refusals of the core by the names that a dialect has for the parameters."""

from __future__ import annotations

import re
from collections.abc import Mapping

from cirrusmq.base.errors import CirrusMQError

_STEP = re.compile(r"[.\[]")
_NATIVE = re.compile(r"[a-z]+(?:_[a-z]+)+", re.ASCII)
"""Names in the words of a reason that are no words of English."""


def renamed(error: CirrusMQError, names: Mapping[str, str]) -> tuple[str | None, str]:
    """Returns the dialect's name of the parameter that is refused, and the reason without a name.

    names: the dialect's names by the core's. A member has its parameter's name if it has none, and
    a message's place is left out. In the reason, names of other parameters are the dialect's too.
    Returns None for the name if the dialect has none: then the
    reason is the core's whole text.
    """
    parameter = error.parameter or ""
    own = parameter.partition("].")[2] or parameter
    name = names.get(own) or names.get(_STEP.split(own, maxsplit=1)[0])
    reason = error.detail
    if name:
        # A size's reason goes on without a colon: `messages[0].body has 9 bytes`.
        reason = reason.removeprefix(parameter).removeprefix(":").lstrip()
    return name, _NATIVE.sub(lambda found: names.get(found[0], found[0]), reason)
