"""Model: queues, topics, messages, parcels and receipts as values, and the rules on them. Pure.

Everything may use it; it reads and writes nothing.
"""
