"""Billing and backlog reports from exports of the tables: readers, pure transforms, writers.

Imports only the standard library and PySpark, so that a job needs just one zip of this package.
"""

from __future__ import annotations

VERSION = "2"
"""Version of the rules by which bills are made; documents name it."""
