"""Aliyun's Message Queue for RocketMQ, its HTTP protocol: XML, signed with HMAC-SHA1."""

from __future__ import annotations

from cirrusmq_dialects.aliyun.serve import serve

__all__ = ["serve"]
