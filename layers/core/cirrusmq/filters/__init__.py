"""Filters: which messages reach a subscription of a topic or a receiver of a queue.

Nothing is imported here: senders check tags, and need not load the SQL filters for it.
"""

from __future__ import annotations
