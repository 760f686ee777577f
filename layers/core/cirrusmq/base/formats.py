"""Values of another release: further fields are ignored, a higher format is refused.

A release reads a form before the next one writes it, so that both can be in use beside each other:

    release 8   reads  receipt + field        writes  receipt
    release 9   reads  receipt + field        writes  receipt + field      (goes back: 8 reads it)

A field that must not be ignored comes with a format: `{"format": 3}` in packed values or in JSON,
`format=3` among the further fields of a text.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping

from cirrusmq.base.errors import Unavailable

FORMAT = 2
"""The highest format that this release uses: 2 is of subscriptions that filter by bodies."""
WRITTEN_FORMAT = 2
"""The highest format that this release writes."""
_logger = logging.getLogger(__name__)


def tell_later(what: str) -> None:
    """Logs that `what` is not used here.

    It is a warning: errors would turn back the release that is rolled out.
    """
    _logger.warning("%s is of a later release", what)


def later_release(what: str, detail: str) -> Unavailable:
    """Logs and returns the refusal of `what`, which a later release wrote."""
    tell_later(what)
    return Unavailable(detail)


def check_format(found: object, what: str) -> None:
    """Raises Unavailable if `found` is a format that this release does not know."""
    if is_later(found):
        raise later_release(f"a {what}", f"This {what} was made by a later release; call again.")


def check_fields(fields: Iterable[object], what: str) -> None:
    """Raises Unavailable if one of the further fields names a later format."""
    for each in fields:
        if isinstance(each, Mapping):
            check_format(each.get("format"), what)


def known_part(text: str, separator: str, what: str) -> str:
    """Returns a text up to its further fields, which are behind separators.

    Raises Unavailable if one of them names a later format.
    """
    known, *further = text.split(separator)
    for each in further:
        name, _, value = each.partition("=")
        if name == "format" and value.isdecimal():
            check_format(int(value), what)
    return known


def is_later(found: object) -> bool:
    """Returns True if `found` is a format that this release does not know."""
    return isinstance(found, int) and found > FORMAT
