"""The OpenAPI document of the HTTP contract: `python -m infra.openapi` writes it."""

from __future__ import annotations
