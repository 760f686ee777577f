"""Filters: which messages reach a subscription of a topic or a receiver of a queue. Pure.

Used by the model and by fan-out.
"""
