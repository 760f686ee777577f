"""Push: delivering the messages of HTTP subscriptions to their URLs, and retrying.

Called by the handlers of `push` and `push_slow`, by the state machine of the retries and by the sweep.
"""
