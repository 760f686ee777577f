"""The value of an SQL expression for attributes, as a word."""

from __future__ import annotations

from typing import Literal

from cirrusmq.filters.sql.evaluation import Attributes, EvaluationError
from cirrusmq.filters.sql.expression import compile_sql

Outcome = Literal["true", "false", "null", "error"]


def outcome(expression: str, attributes: Attributes) -> Outcome:
    """The expression's value for these attributes, TAGS among them if it is to have any.

    Raises `InvalidFilter` for an expression that is refused.
    """
    try:
        value = compile_sql(expression).value(attributes)
    except EvaluationError:
        return "error"
    if value is None:
        return "null"
    return "true" if value else "false"
