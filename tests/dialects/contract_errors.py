"""The faults of the contract, each of which every dialect has to say in its own words."""

from __future__ import annotations

from cirrusmq.base import errors

CONTRACT_ERRORS = [
    each
    for each in vars(errors).values()
    if isinstance(each, type) and issubclass(each, errors.CirrusMQError)
]
