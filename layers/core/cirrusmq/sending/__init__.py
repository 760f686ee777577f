"""Sending: from the messages of a call to their items, written once however often it is repeated.

Called by the HTTP routes; publishing, fan-out and dead letters make their items by it.
"""
