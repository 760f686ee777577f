"""Base: errors, limits, names, times, ids and decoding, which have no notion of a queue.

Everything may use it.
"""
