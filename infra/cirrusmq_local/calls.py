"""HTTP calls of the command line to a running service."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import httpx

from cirrusmq_local.console import fail
from cirrusmq_local.data import CONNECTION_FIELDS, read_connection

# A receive may take 30 s to answer that there is nothing.
TIMEOUT_SECONDS = 40.0
_VARIABLES = {
    "url": "CIRRUSMQ_URL",
    "access_key_id": "CIRRUSMQ_ACCESS_KEY_ID",
    "secret": "CIRRUSMQ_SECRET",
}
_HINTS = {
    "Unauthenticated": "check CIRRUSMQ_ACCESS_KEY_ID and CIRRUSMQ_SECRET, or connection.json",
    "QueueNotFound": "cirrusmq queue list shows the queues there are",
    "Throttled": "wait a moment and repeat",
    "Unavailable": "wait a moment and repeat",
}


class Service:
    """The service, as the holder of one access key reaches it."""

    def __init__(self, connection: dict[str, str]) -> None:
        self._url = connection["url"].rstrip("/")
        key = f"{connection['access_key_id']}:{connection['secret']}"
        self._client = httpx.Client(
            base_url=self._url,
            headers={"authorization": f"Bearer {key}"},
            timeout=TIMEOUT_SECONDS,
            trust_env=False,
        )

    def call(
        self,
        method: str,
        path: str,
        body: dict[str, Any] | None = None,
        query: dict[str, str] | None = None,
    ) -> Any:
        """The answer's JSON, None where it has none. Ends the command if the call is refused."""
        try:
            answer = self._client.request(method, path, json=body, params=query)
        except httpx.ConnectError:
            fail(f"nothing answers at {self._url}", "start the service with: cirrusmq up")
        except httpx.InvalidURL:
            fail(f"{self._url} is not a URL", "it looks like http://127.0.0.1:8080")
        except httpx.HTTPError as error:
            fail(
                f"no answer from {self._url}: {error or type(error).__name__}",
                "the call may have taken effect",
            )
        if answer.is_success:
            return answer.json() if answer.content else None
        fail(*_refusal(answer))


def connect(data: Path) -> Service:
    """The service that the environment names, else the one whose data lie in the folder."""
    given = {name: os.environ.get(variable, "") for name, variable in _VARIABLES.items()}
    if any(given.values()):
        missing = [_VARIABLES[name] for name, value in given.items() if not value]
        if missing:
            fail(f"{', '.join(missing)} not set", f"all of {', '.join(_VARIABLES.values())}")
        return Service(given)
    path = data / "connection.json"
    try:
        connection = read_connection(path)
    except (OSError, ValueError):
        fail(f"{path} is not readable or damaged", f"it holds {', '.join(CONNECTION_FIELDS)}")
    if connection is None:
        fail(f"{path} does not exist", "start the service with: cirrusmq up")
    return Service(connection)


def _refusal(answer: httpx.Response) -> tuple[str, str | None]:
    try:
        problem = answer.json()
        return problem["detail"], _HINTS.get(problem["code"])
    except (ValueError, KeyError, TypeError):
        return f"the service answered {answer.status_code}", "is it a CirrusMQ service?"
