"""The manual: its pages, and what makes a site of them (`python -m infra.manual`)."""

from __future__ import annotations
