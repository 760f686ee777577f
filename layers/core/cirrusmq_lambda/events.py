"""Events from one function of the service to another, which may be of different releases.

What an event has beside what is read of it is passed over. One that is not known, or is of a higher
format, is left to a function of the later release: the sweep finds what it was about, and tells it
again within a minute or two. It is no error, of which Lambda's count would turn a release back.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from cirrusmq.base.formats import is_later, tell_later


def is_known(event: Mapping[str, Any], kinds: Collection[str]) -> bool:
    """Whether this release can act on an event: it has a member of `kinds`, and no later format."""
    known = any(kind in event for kind in kinds) and not is_later(event.get("format"))
    if not known:
        tell_later(f"an event with {', '.join(sorted(event)) or 'nothing'}")
    return known
