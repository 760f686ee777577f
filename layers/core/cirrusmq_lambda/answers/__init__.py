"""The answers of the HTTP contract: a struct for each JSON object, made from values of the core.

Routes return them, and their types make the OpenAPI document and the client's types. A function
imports only the modules whose answers it gives.
"""

from __future__ import annotations
