"""Heads: the key from which a look at a source begins, as far as all before it has ended.

`watermark` has the rules, `items` what is in the table, `memory` what an environment keeps;
`shared` is for unordered sources, `ended` for ordered ones: neither loads the other.
"""
