"""Storage: the tables' items, their keys and shapes, and how they are read.

The only code that knows attribute names. It has no rules of the business.
"""
