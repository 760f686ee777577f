"""Logs and metrics of the functions, one logger and one set of metrics a process."""

from __future__ import annotations

import logging

from aws_lambda_powertools import Logger, Metrics

logger = Logger()
metrics = Metrics()

# At DEBUG these write whole requests: messages, and the deployment's secret. Never, whatever level
# the root logger is given.
for _name in ("botocore", "pynamodb", "urllib3"):
    logging.getLogger(_name).setLevel(logging.INFO)
