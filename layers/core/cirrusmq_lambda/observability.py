"""Logs and figures of the functions."""

from __future__ import annotations

import logging

from aws_lambda_powertools import Logger
from aws_lambda_powertools.metrics import MetricUnit, single_metric
from aws_lambda_powertools.metrics.functions import is_metrics_disabled

__all__ = ["MetricUnit", "logger", "tell"]

logger = Logger()

# At DEBUG these write whole requests: messages, and the deployment's secret. Never, whatever level
# the root logger is given.
for _name in ("botocore", "pynamodb", "urllib3"):
    logging.getLogger(_name).setLevel(logging.INFO)


def tell(name: str, unit: MetricUnit, value: float) -> None:
    """Put a figure into the log, where CloudWatch takes it from for alarms and the dashboard."""
    if not is_metrics_disabled():
        with single_metric(name=name, unit=unit, value=value):
            pass
