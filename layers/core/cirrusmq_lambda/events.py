"""Events from one function of the service to another, which may run different releases.

Unknown members of an event are ignored. An event that is not known, or of a higher format, is left
to a function of the later release: the sweep finds its work, and sends it again within two minutes.
This is not an error, since Lambda's count of errors would roll a release back.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from cirrusmq.base.formats import is_later, tell_later


def is_known(event: Mapping[str, Any], kinds: Collection[str]) -> bool:
    """Returns True if this release handles the event: a member is in `kinds`, no later format."""
    known = any(kind in event for kind in kinds) and not is_later(event.get("format"))
    if not known:
        tell_later(f"an event with {', '.join(sorted(event)) or 'nothing'}")
    return known
