"""Push: delivering the messages of HTTP subscriptions to their URLs, and retrying.

Called by the handlers of `push` and `push_slow`, and by the sweep.
"""
