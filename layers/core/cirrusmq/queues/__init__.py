"""Queues and their receivers: creating, changing, showing, counting; the operations on them.

Called by the HTTP routes and by all that works on queues.
"""
