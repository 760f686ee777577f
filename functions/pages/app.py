"""The console and the manual: the files beside this one, for everyone"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from cirrusmq_lambda.pages import serve

FOLDER = Path(__file__).resolve().parent


def handler(event: dict[str, Any], context: Any) -> dict[str, Any]:
    return serve(FOLDER, event)
