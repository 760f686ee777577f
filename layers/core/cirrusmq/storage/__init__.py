"""Storage: what lies in the tables, under which key and in which shape, and how it is read.

The only code that knows attribute names. It has no rules of the business.
"""
