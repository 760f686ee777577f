"""Ids of requests and invocations."""

from __future__ import annotations

import random


def make_id() -> str:
    """A random id in the form of a UUID of version 4.

    It guards nothing: no call of the system is made for it, at which another thread would go on.
    """
    digits = f"{random.getrandbits(128):032x}"
    return f"{digits[:8]}-{digits[8:12]}-4{digits[13:16]}-a{digits[17:20]}-{digits[20:]}"
