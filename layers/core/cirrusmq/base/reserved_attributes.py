"""Names of the attributes in which a message carries what the service says of it.

No caller of the API gives a name that begins with `$`, and no two hexadecimal digits follow it in
these: such names are written for SDKs of other services (`sdk_attributes.py`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

MARK = "$"
TYPES, TRACE, ONCE, SUBJECT = "$types", "$trace", "$once", "$subject"
"""For SDKs: types of attributes, the trace header, the deduplication id, a subject of SNS."""
FROM = "$from"
"""The account that sent the message: `model/sender.py`."""
PRIORITY = "$prio"
"""The message's priority, if it is not 1: `model/priority.py`."""
HTTP, HTTPS, LAMBDA = "$http", "$https", "$lambda"
"""The texts for URLs and functions, if they are not the body: `Subscription.body_for`."""
TEXTS = frozenset({HTTP, HTTPS, LAMBDA})
RESERVED = frozenset({TYPES, TRACE, ONCE, SUBJECT, FROM, PRIORITY}) | TEXTS


def own_text(attributes: Mapping[str, str | bytes], names: Sequence[str]) -> str | bytes:
    """Returns the text in the first attribute of `names` that there is; empty: the body is it."""
    return next((attributes[name] for name in names if name in attributes), "")
