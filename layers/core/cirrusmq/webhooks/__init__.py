"""Webhooks: requests that leave the deployment: their addresses, their content, their sending.

Used by push and by confirmations. It reads and writes no table.
"""
