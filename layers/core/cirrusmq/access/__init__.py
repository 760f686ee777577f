"""Access: who is calling, what they may do, and how often.

Called by the HTTP layer before everything else.
"""
