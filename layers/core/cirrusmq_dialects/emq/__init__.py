"""Xiaomi's EMQ: Thrift's binary protocol over POST, signed with HMAC-SHA1.

emq.thrift      its contract                 contract.py    the contract's structs and methods
signature.py    the text that is signed      errors.py     the core's errors by EMQ's codes
protocol.py     bytes <-> structs, bounded   contents.py   bodies and attributes of messages
serve.py        one call                     asking.py     a call whose caller is known
attributes.py   attributes, numbers, tags    *_calls.py    the functions of the methods
"""

from __future__ import annotations

from cirrusmq_dialects.emq.serve import serve

__all__ = ["serve"]
