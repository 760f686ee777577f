"""SQL filters over a message's attributes: `price > 10 AND region IN ('a', 'b')`.

Nothing of a filter is ever run as Python: it is read into tokens, parsed by its own grammar,
and evaluated by a small stack machine.
"""

from __future__ import annotations

from cirrusmq.filters.sql.expression import Outcome, SqlFilter, compile_sql, outcome

__all__ = ["Outcome", "SqlFilter", "compile_sql", "outcome"]
