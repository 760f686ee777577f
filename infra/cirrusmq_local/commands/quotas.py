"""Default AWS quotas that can limit a deployment of this service.

Source: the documentation of each AWS service in November 2026, for a large region. Lower quotas of
smaller regions are given if they are documented. Service Quotas shows the quotas of an account; a
new account may have less of Lambda's and Step Functions'. Nobody has tested these in an account.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Quota:
    """One quota: what it limits, its default, and what happens above it."""

    name: str
    default: int
    at_its_end: str
    more: str
    """How to raise it."""


_ASKED = "Service Quotas"
API_CALLS = Quota(
    "HTTP API: calls a second to all APIs (bursts of 5,000)",
    10_000,
    "429 before any function",
    f"{_ASKED}; DirectUrls=true needs none",
)
CONCURRENCY = Quota(
    "Lambda: concurrent executions",
    1_000,
    "429 from direct URLs, 503 from the API; streams and deliveries are late",
    _ASKED,
)
CALLS_A_UNIT = 10
"""Calls a second that Lambda accepts for each concurrent execution of a function."""
INVOCATIONS = Quota(
    "Lambda: calls a second, 10 for each execution of the quota",
    CALLS_A_UNIT * CONCURRENCY.default,
    "as above",
    "grows with the executions",
)
TABLE_WRITES = Quota(
    "DynamoDB: write units a second of the table Messages, on demand too",
    40_000,
    "503 and Retry-After; nothing is lost",
    _ASKED,
)
TABLE_READS = Quota(
    "DynamoDB: read units a second of the table Messages, on demand too",
    40_000,
    "503 and Retry-After",
    _ASKED,
)
KEY_WRITES, KEY_READS = 1_000, 3_000
"""Units a second of one partition key: DynamoDB does not raise it."""
DOCUMENT_READS = Quota(
    "DynamoDB: read units a second of one document (a busy queue's, a key's)",
    KEY_READS,
    "503 and Retry-After",
    "cannot be raised: use fewer execution environments, or several queues and keys",
)
USAGE_WRITES = Quota(
    "DynamoDB: write units a second of the table Usage",
    40_000,
    "the meter is late, and an alarm says so before records expire",
    _ASKED,
)
STARTS = Quota(
    "Step Functions: starts a second, after a burst of 1,300 (150 after 800 in smaller regions)",
    300,
    "the sweep starts them within minutes",
    _ASKED,
)
PUTS = Quota(
    "S3: writes a second to a prefix, before S3 splits it",
    3_500,
    "503; sends up to 256 KB go to the table",
    "S3 raises it in minutes: the keys begin with three random digits",
)
GETS = Quota("S3: reads a second of a prefix, before S3 splits it", 5_500, "503", "as above")
KEY_REQUESTS = Quota(
    "KMS: requests a second (20,000 to 100,000 in larger regions)",
    10_000,
    "503",
    _ASKED,
)
JOB_CPUS = Quota(
    "EMR Serverless: concurrent vCPUs",
    16,
    "the jobs of the night get fewer executors and take longer",
    _ASKED,
)
