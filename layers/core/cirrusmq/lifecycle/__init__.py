"""Lifecycle: what happens to parcels: moved, given up to dead letters, removed when empty.

Called by what receives, settles, pushes and sweeps; knows nothing of who calls.
"""
