"""Routes of the functions that have many: a table of route keys for each kind of resource."""

from __future__ import annotations
