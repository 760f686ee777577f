"""Webhooks: requests that leave the deployment: their addresses, their content, their sending.

Used by push and by confirmations. It knows nothing of topics.
"""
