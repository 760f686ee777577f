"""The bucket of the template that the service keeps messages in, embedded."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from cirrusmq_local.bucket import Bucket, Rule
from cirrusmq_local.cloud import template as declared
from cirrusmq_local.cloud.cloudformation import TemplateError


def bodies_bucket(template: declared.Template) -> declared.Bucket:
    """The bucket that functions are told as `BODIES_BUCKET`."""
    name = template.environment()["BODIES_BUCKET"]
    for each in template.buckets:
        if each.name == name:
            return each
    raise TemplateError(f"the template has no bucket {name}")


def open_bucket(
    bucket: declared.Bucket,
    folder: Path | None,
    now_ms: Callable[[], int],
    on_failure: Callable[[OSError], None] = lambda error: None,
) -> Bucket:
    """Open it in a folder, or in memory; raises OSError."""
    rules = [Rule(prefix=each.prefix, days=each.days) for each in bucket.rules]
    return Bucket(bucket.name, rules, folder, now_ms=now_ms, on_failure=on_failure)
