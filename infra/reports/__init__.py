"""Billing and backlog reports in an account: their stack, and the files made for it."""
