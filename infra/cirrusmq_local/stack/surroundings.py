"""Settings of the stack's process: environment variables, open files, garbage collection."""

from __future__ import annotations

import contextlib
import gc
import os
import resource

from cirrusmq_local.cloud.aws import isolate_environment
from cirrusmq_local.cloud.environments import Layout
from cirrusmq_local.cloud.template import Template
from cirrusmq_local.stack.data import DataFolder
from cirrusmq_local.stack.metrics import MAX_RESOURCES

_OWN_VARIABLES = (
    "POWERTOOLS_LOG_LEVEL",
    "ACCOUNT_REQUESTS_PER_SECOND",
    "ACCOUNT_WAITING_RECEIVES",
    "BODIES_IN_S3_FROM",
)
"""Variables of the stack's own environment that functions get, too."""


GARBAGE_AFTER = 10_000
"""New objects after which they are collected; a batch of a stream makes more."""


def set_environment(
    template: Template, data: DataFolder, layout: Layout, *, stand_in: bool
) -> None:
    """Sets the variables of the deployment, with their values for one machine."""
    isolate_environment()
    own = {name: os.environ[name] for name in _OWN_VARIABLES if name in os.environ}
    os.environ |= template.environment() | {
        # With one cache for all functions, the others see a change of one at once.
        "SHARED_CACHES": "true" if layout == "shared" else "false",
        # A user who tries the service out has the subscriber on the same machine.
        "CONFIRM_ENDPOINTS": "false",
        "HTTP_ENDPOINTS": "true",
        # The owner of the admin key gives the functions at the start.
        "INVOKE_FUNCTIONS_BY": "managers",
        "ALLOWED_NETWORKS": "127.0.0.0/8,::1/128",
        # One machine has one user, and its time may pass faster.
        "ACCOUNT_REQUESTS_PER_SECOND": "0",
        "REPORTS_FOLDER": str(data.reports),
        # A line for each call is for a log service, not for a disk.
        "POWERTOOLS_LOG_LEVEL": "WARNING",
        "POWERTOOLS_METRICS_DISABLED": "true",
        "MEASURED_BACKLOGS": str(MAX_RESOURCES),
        # Programs for emulators expect messages in the order of their sends.
        "SQS_PARTITIONS": "1" if stand_in else "0",
    }
    os.environ |= own


def allow_many_connections() -> None:
    """Raises the limit of open files as far as allowed: each connection is one."""
    _, limit = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = 65_536 if limit == resource.RLIM_INFINITY else limit
    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, limit))


def spare_what_is_loaded() -> None:
    """Collects garbage less often, and not among the loaded objects, which stay forever.

    A pump holds a thousand records for a while. Each time this added many objects, the collector
    went through all half a million objects, libraries included, and every call waited.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(GARBAGE_AFTER, *gc.get_threshold()[1:])
