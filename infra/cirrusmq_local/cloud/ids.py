"""Makes ids of requests and invocations."""

from __future__ import annotations

import random


def make_id() -> str:
    """Returns a random id in the form of a UUID of version 4.

    It is no secret, so it is made without a system call, at which another thread could take over.
    """
    digits = f"{random.getrandbits(128):032x}"
    return f"{digits[:8]}-{digits[8:12]}-4{digits[13:16]}-a{digits[17:20]}-{digits[20:]}"
