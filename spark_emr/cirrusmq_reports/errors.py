"""What a job refuses."""

from __future__ import annotations


class BadInput(Exception):
    """One sentence that names the file or the option at fault. The job ends with exit code 2."""
