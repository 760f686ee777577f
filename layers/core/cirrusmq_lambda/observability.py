"""Logs and figures of the functions."""

from __future__ import annotations

import logging

from aws_lambda_powertools import Logger
from aws_lambda_powertools.metrics import MetricUnit, single_metric
from aws_lambda_powertools.metrics.functions import is_metrics_disabled

__all__ = ["MetricUnit", "logger", "tell"]

logger = Logger()

# At DEBUG these write whole requests: messages, and the deployment's secret. So they never do, with
# any level of the root logger.
for _name in ("botocore", "pynamodb", "urllib3"):
    logging.getLogger(_name).setLevel(logging.INFO)


def tell(name: str, unit: MetricUnit, value: float) -> None:
    """Log a figure as a metric, for CloudWatch's alarms and the dashboard."""
    if not is_metrics_disabled():
        with single_metric(name=name, unit=unit, value=value):
            pass
