"""SQL filters over a message's attributes: `price > 10 AND region IN ('a', 'b')`.

Nothing of a filter is ever run as Python: it is read into tokens, parsed by its own grammar,
and evaluated by a small stack machine.
"""
