"""Counts turns of phrase that readers of English as a second language stumble over."""
