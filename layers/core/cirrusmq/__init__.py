"""CirrusMQ's core: queues and their messages on DynamoDB. No HTTP and no Lambda event in it."""

from __future__ import annotations

__version__ = "0.1.0"
