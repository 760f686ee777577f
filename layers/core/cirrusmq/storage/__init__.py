"""Everything that touches DynamoDB: the PynamoDB models and the calls the core makes of them."""

from __future__ import annotations
