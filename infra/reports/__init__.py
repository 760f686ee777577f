"""Billing and backlog reports in an account: their stack, and what is made for it."""
