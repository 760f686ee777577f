"""Queues, topics, subscriptions, receivers and grants in one file, and the steps to apply it.

    document.py    the file: from YAML to resources, every value checked, and back
    contract.py    the attributes of each kind, by the structs of the contract
    account.py     the account's resources, read through the client library
    plan.py        the steps from the account's resources to the file's
    applying.py    does the steps, one call each

All reads and writes go over HTTP with a key, through `cirrusmq_client`: it makes no difference if
the service is on one machine or in the cloud. From the core only values are used
(`cirrusmq.model`, filters, names): they define the attributes, their defaults and ranges.
"""
