"""Logs and metrics of the functions, one logger and one set of metrics a process."""

from __future__ import annotations

from aws_lambda_powertools import Logger, Metrics

logger = Logger()
metrics = Metrics()
