"""Measures the costs and the speed of CirrusMQ, beside other queues.

counted    parts that count units and money; the other designs on DynamoDB in closed form
measured   parts that measure this machine
rivals     servers that run beside ours, and a client of each
drawing    tables and charts
charts     the charts that are drawn
"""

from __future__ import annotations
