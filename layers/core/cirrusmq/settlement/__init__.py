"""Settlement: a consumer's calls by receipt: delete, hold longer, give back, dead-letter.

Called by the HTTP routes.
"""
