"""Half messages: written before the producer's own work, and published or dropped after it.

`prepare` and `decide` are the producer's calls; `checks` are the service's questions about
undecided ones.
"""
