"""Amazon SQS: the JSON protocol of its SDKs since 2023, and the query protocol of older SDKs."""

from __future__ import annotations

from cirrusmq_dialects.sqs.serve import serve

__all__ = ["serve"]
