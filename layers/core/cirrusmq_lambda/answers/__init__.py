"""The answers of the HTTP contract: a struct for each JSON object, made from values of the core.

Routes return these structs; the OpenAPI document and the client's types are made from them. A
function imports only the modules with its own answers.
"""

from __future__ import annotations
