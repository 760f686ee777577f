"""Filter policies, as SNS has them.

attribute_policy.py     over a message's attributes
body_policy.py          over the members of a body that is a JSON object
conditions.py           what a policy asks of a value
policy_limits.py        how large and how deep a policy may be
"""
