"""The edge of Lambda: turns events of API Gateway, streams and schedules into calls and answers."""

from __future__ import annotations
