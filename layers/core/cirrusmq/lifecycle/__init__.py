"""Lifecycle: parcels are moved, dead-lettered, and removed when empty.

Called by receives, settlements, pushes and the sweep; knows nothing of its callers.
"""
