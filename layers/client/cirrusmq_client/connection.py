"""The service's URL and an access key: from the environment, else from the service's folder."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from cirrusmq_client.errors import NotConfigured

VARIABLES = {
    "url": "CIRRUSMQ_URL",
    "access_key_id": "CIRRUSMQ_ACCESS_KEY_ID",
    "secret": "CIRRUSMQ_SECRET",
}
DATA = Path(".local")
FILE = "connection.json"


@dataclass(frozen=True, kw_only=True)
class Connection:
    """A service and a key."""

    url: str
    access_key_id: str
    secret: str = field(repr=False)

    @property
    def authorization(self) -> str:
        """The header that shows the key."""
        return f"Bearer {self.access_key_id}:{self.secret}"


def find_connection(
    data: Path | str = DATA, environment: Mapping[str, str] = os.environ
) -> Connection:
    """The connection that the environment names, else the one in `<data>/connection.json`.

    Raises NotConfigured.
    """
    given = {name: environment.get(variable, "") for name, variable in VARIABLES.items()}
    if not any(given.values()):
        return read_connection(Path(data) / FILE)
    missing = [VARIABLES[name] for name, value in given.items() if not value]
    if missing:
        raise NotConfigured(
            f"{', '.join(missing)} not set: all of {', '.join(VARIABLES.values())} are needed"
        )
    return Connection(**given)


def read_connection(path: Path) -> Connection:
    """The connection in a file; NotConfigured where it holds none."""
    try:
        held = json.loads(path.read_text(encoding="utf-8"))
        return Connection(**{name: _text(held[name]) for name in VARIABLES})
    except (FileNotFoundError, NotADirectoryError) as error:
        raise NotConfigured(
            f"{path} does not exist: start the service with: cirrusmq up; or set"
            f" {', '.join(VARIABLES.values())}"
        ) from error
    except OSError as error:
        raise NotConfigured(f"{path} cannot be read: {error.strerror}") from error
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise NotConfigured(
            f"{path} is damaged, it does not hold {', '.join(VARIABLES)}: remove it, and the next"
            " start of the service writes a new one"
        ) from error


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError
    return value
