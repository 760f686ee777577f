"""Webhooks: requests that leave the deployment: their addresses, their content, how they are sent.

Used by push and by confirmations. It knows nothing of topics.
"""
