"""Work on one resource among many: its error is logged, and stops none of the others."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Iterator

from cirrusmq.base.errors import CirrusMQError

_logger = logging.getLogger(__name__)


@contextlib.contextmanager
def log_and_continue(what: str) -> Iterator[None]:
    """Runs a block that may fail; `what` names it in the log.

    An error of the contract, such as Unavailable, is a warning: the work is tried again. Any
    other is an error, for which an alarm rings.
    """
    try:
        yield
    except CirrusMQError as error:
        _logger.warning("%s: %s", what, error.code)
    except Exception:
        _logger.exception(what)
