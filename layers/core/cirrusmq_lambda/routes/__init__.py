"""Routes: a table of route keys for each kind of resource or call.

They are here and not in `functions/`, whose files each cold start compiles again.
"""

from __future__ import annotations
