"""The template's bucket for message bodies, embedded in the process."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from cirrusmq_local.bucket import Bucket, Rule
from cirrusmq_local.cloud import template as declared
from cirrusmq_local.cloud.cloudformation import TemplateError


def bodies_bucket(template: declared.Template) -> declared.Bucket:
    """Returns the bucket that functions know as `BODIES_BUCKET`."""
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
    """Opens the bucket in a folder, or in memory if `folder` is None. Raises OSError."""
    rules = [Rule(prefix=each.prefix, days=each.days) for each in bucket.rules]
    return Bucket(bucket.name, rules, folder, now_ms=now_ms, on_failure=on_failure)
