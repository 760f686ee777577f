"""Made from the routes and their structs: the OpenAPI document, and the client's types."""

from __future__ import annotations
