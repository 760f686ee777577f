"""Replacing the message that waits under a key: a send that cancels an older message.

`rules` checks requests and bounds delays, `items` has the item of a key, `in_place` writes.
"""
