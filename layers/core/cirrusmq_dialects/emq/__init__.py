"""Xiaomi's EMQ: Thrift's binary protocol over POST, signed with HMAC-SHA1.

signature.py    the text that is signed      structs.py    the structs of its contract
protocol.py     bytes <-> structs, bounded   errors.py     the core's errors by EMQ's codes
serve.py        one call                     asking.py     a call whose caller is known
calls.py        methods and the functions of the `*_calls.py`
attributes.py   attributes, numbers, tags    contents.py   bodies and attributes of messages
"""

from __future__ import annotations

from cirrusmq_dialects.emq.serve import serve

__all__ = ["serve"]
