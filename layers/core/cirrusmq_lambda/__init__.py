"""The edge of Lambda: events of API Gateway, streams and schedules, and the answers to them."""

from __future__ import annotations
