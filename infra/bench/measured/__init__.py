"""Parts that measure this machine: rates, times, CPU seconds.

Compare columns of one run, never two runs.
"""
