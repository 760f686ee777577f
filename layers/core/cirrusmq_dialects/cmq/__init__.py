"""Tencent Cloud's CMQ, API 2.0: forms that are signed with HMAC, answered in JSON."""

from __future__ import annotations

from cirrusmq_dialects.cmq.serve import serve

__all__ = ["serve"]
