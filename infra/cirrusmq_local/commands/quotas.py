"""Quotas of AWS that a deployment of this service meets, as an account has them by default.

Read in the services' own documentation of quotas, in November 2026, of a large region; smaller ones
have less where it is said. An account's own are in Service Quotas, and a new account may have less
of Lambda's and Step Functions'. Nothing here was tried in an account.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Quota:
    """One quota: what it bounds, how much of it an account has, and what its end looks like."""

    name: str
    default: int
    at_its_end: str
    more: str
    """How to have more."""


_ASKED = "Service Quotas"
API_CALLS = Quota(
    "HTTP API: calls a second of all APIs (bursts of 5,000)",
    10_000,
    "429 before any function",
    f"{_ASKED}; DirectUrls=true needs none",
)
CONCURRENCY = Quota(
    "Lambda: executions at once",
    1_000,
    "429 of direct URLs, 503 by the API; streams and deliveries are late",
    _ASKED,
)
CALLS_A_UNIT = 10
"""Calls a second that Lambda takes of a function for each execution that it may have at once."""
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
"""Units a second of one partition key: DynamoDB has no more for anybody."""
DOCUMENT_READS = Quota(
    "DynamoDB: read units a second of one document (a busy queue's, a key's)",
    KEY_READS,
    "503 and Retry-After",
    "nobody has more: fewer execution environments, or several queues and keys",
)
USAGE_WRITES = Quota(
    "DynamoDB: write units a second of the table Usage",
    40_000,
    "the meter is late, and tells it before records end",
    _ASKED,
)
STARTS = Quota(
    "Step Functions: starts a second, after a first 1,300 (150 after 800 in smaller regions)",
    300,
    "the sweep starts them within minutes",
    _ASKED,
)
PUTS = Quota(
    "S3: writes a second of a prefix, before it divides",
    3_500,
    "503; sends up to 256 KB go to the table",
    "comes by itself in minutes: the keys begin with three random digits",
)
GETS = Quota("S3: reads a second of a prefix, before it divides", 5_500, "503", "as above")
KEY_REQUESTS = Quota(
    "KMS: requests a second (20,000 to 100,000 in larger regions)",
    10_000,
    "503",
    _ASKED,
)
JOB_CPUS = Quota(
    "EMR Serverless: vCPUs at once",
    16,
    "the night's jobs get no more executors and take longer",
    _ASKED,
)
