"""Receiving: finding messages at the heads of partitions, and claiming them.

Called by the routes that receive and peek; redriving searches by it too.
"""
