"""Billing and backlog reports from exports of the tables: readers, pure transforms, writers.

Nothing but the standard library and PySpark is imported, so that one zip of this package is all
that a job needs.
"""

from __future__ import annotations

VERSION = "2"
"""Of the way in which bills are made; documents name it."""
