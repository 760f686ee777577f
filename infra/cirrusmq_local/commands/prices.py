"""Published prices that estimates use: US dollars, us-east-1, November 2026.

Source: the price lists of DynamoDB (on-demand and provisioned capacity, backup, exports), API
Gateway (HTTP APIs, metered in 512 KB), Lambda (arm64), S3 (Standard), KMS, Secrets Manager,
CloudWatch, EMR Serverless (arm64), SQS (standard queues, first tier) and SNS (standard topics).
Free tiers and volume discounts are left out for all services. Only the idle month has a column
with CloudWatch's free tier. SQS and SNS count each 64 KB of a request's payload as a request. SNS
delivers to a queue for free.
"""

from __future__ import annotations

MILLION = 1_000_000

WRITE_UNITS_PER_MILLION = 0.625
READ_UNITS_PER_MILLION = 0.125
WRITE_UNIT_HOUR = 0.00065
"""Provisioned capacity: a unit a second for an hour, used or not."""
READ_UNIT_HOUR = 0.00013

HTTP_API_PER_MILLION = 1.00
LAMBDA_REQUESTS_PER_MILLION = 0.20
LAMBDA_GB_SECOND = 0.0000133334
CALL_GB, HOT_GB, PUSH_GB = 0.5, 0.25, 0.25
"""Memory of our functions in the template: functions of the API and the stream, then `send` and
`receive`, then `push`."""

SNAPSHOT_GB_SECOND = 0.0000015046
"""Memory of a published version (SnapStart for Python)."""
SNAPSHOT_GB_RESTORED = 0.0001397998

S3_PUTS_PER_MILLION = 5.00
"""Storage class Standard; copies cost the same."""
S3_GETS_PER_MILLION = 0.40
S3_GB_MONTH = 0.023
TABLE_GB_MONTH = 0.25
KMS_REQUESTS_PER_MILLION = 3.00
KMS_SHARE = 0.01
"""Share of the requests to S3 that call KMS with bucket keys on, at best, by S3's documentation."""
GB = 1_000_000_000
MONTH_DAYS = 30

RESERVED_OFF = {1: 0.54, 3: 0.77}
"""Maximum discount by years for reserved provisioned units. On-demand units have no reservation."""
LAMBDA_PLAN_OFF = 0.12
"""Discount on Lambda's time by a compute savings plan of one year, nothing upfront (up to 17 % with
three years, all upfront); requests keep their price. Source: public reports of both plans, December
2025 and later."""
TABLE_PLAN_OFF = 0.18
"""Discount on on-demand units by a database savings plan of one year, not for reserved units."""

KEY_MONTH = 1.00
"""KMS key; the first and the second yearly rotation add the same price again."""
SECRET_MONTH = 0.40
ALARM_METRIC_MONTH = 0.10
"""Price of each metric that an alarm reads."""
METRIC_MONTH = 0.30
DASHBOARD_MONTH = 3.00
FREE_ALARM_METRICS, FREE_METRICS, FREE_DASHBOARDS = 10, 10, 3
"""Free tier of an account, without an end. A dashboard is free with up to 50 metrics."""
LOG_GB = 0.50
"""Ingested lines, also access logs of the API."""
LOG_GB_MONTH = 0.03
LOG_PACKED = 0.15
"""Size of a stored line as a share of the ingested line (compression)."""
EXPORT_GB = 0.10
EXPORT_LEAST_GB = 0.01
"""Incremental export; a full export is billed by the table's size."""
BACKUP_GB_MONTH = 0.20
"""Point-in-time recovery, by the table's size."""
EMR_CPU_HOUR, EMR_GB_HOUR = 0.042094, 0.004628
MACHINE_STEPS_PER_MILLION = 25.00
SCHEDULES_PER_MILLION = 1.00

SQS_REQUESTS_PER_MILLION = 0.40
SQS_FIFO_PER_MILLION, SQS_FAIR_PER_MILLION = 0.50, 0.50
SNS_PUBLISHES_PER_MILLION = 0.50
SNS_HTTP_DELIVERIES_PER_MILLION = 0.60
REQUEST_BYTES = 64 * 1_024
"""Bytes that SQS and SNS bill as one request."""
SQS_BATCH = 10
SQS_BATCH_BYTES = 1_024 * 1_024
SNS_BATCH_BYTES = 256 * 1_024


def provisioned_per_million(unit_hour: float, used: float) -> float:
    """Return dollars for a million used units, if the share `used` of the capacity is used."""
    return unit_hour / 3_600 * MILLION / used


BREAK_EVEN = provisioned_per_million(WRITE_UNIT_HOUR, 1.0) / WRITE_UNITS_PER_MILLION
"""Share of used units above which provisioned capacity is cheaper; reads have the same share."""
