"""Heads: the key from which a scan of a source begins, if all messages before it have ended.

`watermark` has the rules, `items` the stored form, `memory` the hints of an environment;
`shared` is for unordered sources, `ended` for ordered ones: neither loads the other.
"""
