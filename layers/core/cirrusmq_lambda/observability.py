"""Logs and figures of the functions.

Powertools is imported by the first line that is logged, since most calls of a function log none:

    cold start ──> calls, not a line ...... a warning ──> Powertools ──> that line, and all others
"""

from __future__ import annotations

import logging
import os
from functools import cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from aws_lambda_powertools import Logger
    from aws_lambda_powertools.metrics import MetricUnit

    logger: Logger

__all__ = ["MetricUnit", "logger", "tell"]

# At DEBUG these write whole requests: messages, and the deployment's secret. So they never do, with
# any level of the root logger.
for _name in ("botocore", "pynamodb", "urllib3"):
    logging.getLogger(_name).setLevel(logging.INFO)

# Its name is that of our package too, so that the core's own loggers are below it.
_ours = logging.getLogger(os.environ.get("POWERTOOLS_SERVICE_NAME", "service_undefined"))


class _AtFirstLine(logging.Handler):
    """Has Powertools take over, and passes it the line."""

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
    return Logger()


def __getattr__(name: str) -> Any:
    if name == "logger":
        return _make_logger()
    if name == "MetricUnit":
        from aws_lambda_powertools.metrics import MetricUnit

        return MetricUnit
    raise AttributeError(name)


def tell(name: str, unit: MetricUnit, value: float) -> None:
    """Log a figure as a metric, for CloudWatch's alarms and the dashboard."""
    from aws_lambda_powertools.metrics import single_metric
    from aws_lambda_powertools.metrics.functions import is_metrics_disabled

    if not is_metrics_disabled():
        with single_metric(name=name, unit=unit, value=value):
            pass
