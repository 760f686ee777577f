"""Access: the caller of a request, its permissions, its rate, and the audit of what it changed.

Called by the HTTP layer before everything else; the audit after everything else.
"""
