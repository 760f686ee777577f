"""Queues, topics, subscriptions, receivers and grants as one file, and the way to what it says.

    document.py    the file: from YAML to resources, every value checked, and back
    contract.py    the attributes of each kind, by the contract's own structs
    account.py     what an account has, read through the client library
    plan.py        the steps from what there is to what the file says
    applying.py    the steps done, one call each

What is read and written is read and written over HTTP with a key, by `cirrusmq_client` alone: it is
the same for a service on one machine and for one in the cloud. Of the core only values are used
(`cirrusmq.model`, filters, names): they say which attributes there are, their defaults and ranges.
"""
