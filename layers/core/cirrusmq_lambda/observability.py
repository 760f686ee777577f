"""Logs of the functions.

Powertools is imported at the first line that is logged, since most calls of a function log none:

    cold start ──> calls, not a line ...... a warning ──> Powertools ──> that line, and all others
"""

from __future__ import annotations

import logging
import os
from functools import cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from aws_lambda_powertools import Logger

    logger: Logger

__all__ = ["RELEASE", "logger"]

RELEASE = os.environ.get("RELEASE", "")
"""The release of this version, in each line; empty on one machine."""

# At DEBUG these log whole requests, with messages and the deployment's secret. This level keeps
# them from it, whatever the root logger's level is.
for _name in ("botocore", "pynamodb", "urllib3"):
    logging.getLogger(_name).setLevel(logging.INFO)

# It has our package's name, so that the core's loggers are below it.
_ours = logging.getLogger(os.environ.get("POWERTOOLS_SERVICE_NAME", "service_undefined"))


class _AtFirstLine(logging.Handler):
    """Replaces itself by Powertools at the first line, and passes it the line."""

    def emit(self, record: logging.LogRecord) -> None:
        _make_logger()
        for handler in _ours.handlers:
            handler.handle(record)


_first = _AtFirstLine()
_ours.addHandler(_first)
_ours.setLevel(os.environ.get("POWERTOOLS_LOG_LEVEL", "INFO"))


@cache
def _make_logger() -> Logger:
    from aws_lambda_powertools import Logger

    _ours.removeHandler(_first)
    made = Logger()
    made.append_keys(release=RELEASE)
    return made


def __getattr__(name: str) -> Any:
    if name == "logger":
        return _make_logger()
    raise AttributeError(name)
