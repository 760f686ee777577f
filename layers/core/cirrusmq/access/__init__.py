"""Access: the caller of a request, its permissions, and its rate.

Called by the HTTP layer before everything else.
"""
