"""An embedded S3: one bucket in a folder or in memory, for the objects that the service keeps."""

from __future__ import annotations

from cirrusmq_local.bucket.attachment import attach_bucket
from cirrusmq_local.bucket.bucket import Bucket
from cirrusmq_local.bucket.errors import S3Error
from cirrusmq_local.bucket.lives import Rule

__all__ = ["Bucket", "Rule", "S3Error", "attach_bucket"]
