"""Settlement: what a consumer says of a message by its receipt: deleted, held longer, given back.

Called by the HTTP routes.
"""
