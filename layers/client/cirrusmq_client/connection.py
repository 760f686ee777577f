"""The service's URL and an access key, from the environment or the service's folder."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from cirrusmq_client.errors import NotConfigured

VARIABLES = {
    "url": "CIRRUSMQ_URL",
    "access_key_id": "CIRRUSMQ_ACCESS_KEY_ID",
    "secret": "CIRRUSMQ_SECRET",
}
OPTIONAL = {"ca_file": "CIRRUSMQ_CA_FILE", "proxy": "CIRRUSMQ_PROXY"}
DATA = Path(".local")
FILE = "connection.json"
_URLS = ("url", VARIABLES["url"])
_HEADERS = tuple(each for name in ("access_key_id", "secret") for each in (name, VARIABLES[name]))
_PATHS = ("ca_file", OPTIONAL["ca_file"])


@dataclass(frozen=True, kw_only=True)
class Connection:
    """The URL of a service, and an access key.

    White space around a value is removed. Raises NotConfigured if a value is not valid.

    - `ca_file`: PEM file with certificates of a private authority, trusted in addition to others.
    - `proxy`: URL of a proxy, `http://user:password@proxy.example:3128`; None uses no proxy.
    """

    url: str
    access_key_id: str
    secret: str = field(repr=False)
    ca_file: str | None = None
    proxy: str | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        for name in (*VARIABLES, *OPTIONAL):
            given = getattr(self, name)
            if given is not None or name in VARIABLES:
                object.__setattr__(self, name, _checked(name, given))

    @property
    def authorization(self) -> str:
        """Value of the header with the key."""
        return f"Bearer {self.access_key_id}:{self.secret}"


def find_connection(
    data: Path | str = DATA, environment: Mapping[str, str] = os.environ
) -> Connection:
    """Returns the connection in the environment, or else in `<data>/connection.json`.

    CIRRUSMQ_CA_FILE and CIRRUSMQ_PROXY apply to both. Raises NotConfigured.
    """
    given = _given(VARIABLES, environment)
    options = _given(OPTIONAL, environment)
    if not given:
        return replace(read_connection(Path(data) / FILE), **options)
    missing = [variable for name, variable in VARIABLES.items() if name not in given]
    if missing:
        raise NotConfigured(
            f"{', '.join(missing)} not set: all of {', '.join(VARIABLES.values())} are needed"
        )
    return Connection(**given, **options)


def _given(variables: Mapping[str, str], environment: Mapping[str, str]) -> dict[str, Any]:
    """Returns the values that are set, by field, each checked under its variable's name."""
    return {
        name: _checked(variable, held)
        for name, variable in variables.items()
        if (held := environment.get(variable, "").strip())
    }


def _checked(name: str, value: object) -> str:
    """Returns the value without white space around it. Raises NotConfigured, without the value."""
    if not isinstance(value, str):
        raise NotConfigured(f"{name}: must be a text")
    text = value.strip()
    wrong = next((at for at, each in enumerate(text, 1) if not _is_plain(name, each)), None)
    if wrong is not None:
        raise NotConfigured(f"{name}: character {wrong} cannot be sent")
    if name in _URLS:
        _check_url(name, text)
    return text


def _check_url(name: str, text: str) -> None:
    """Raises NotConfigured, without the text: somebody may have put the secret here."""
    try:
        parts = urlsplit(text)
        port = parts.port
    except ValueError:
        parts, port = urlsplit(""), None
    if parts.scheme not in ("http", "https") or not parts.hostname or port == 0:
        raise NotConfigured(f"{name}: is not a URL: it looks like http://127.0.0.1:8080")
    if parts.username is not None or parts.password is not None:
        raise NotConfigured(f"{name}: must be a URL without a user and password")


def _is_plain(name: str, character: str) -> bool:
    """Returns True if a header or a URL may have the character; a path may have any."""
    if name in _HEADERS:
        return "!" <= character <= "~"
    return name in _PATHS or (character.isprintable() and character != " ")


def read_connection(path: Path) -> Connection:
    """Returns the connection in a file. Raises NotConfigured if the file holds none."""
    try:
        held = json.loads(path.read_text(encoding="utf-8-sig"))
        return Connection(**{name: held[name] for name in VARIABLES})
    except (FileNotFoundError, NotADirectoryError) as error:
        raise NotConfigured(
            f"{path} does not exist: start the service with: cirrusmq up; or set"
            f" {', '.join(VARIABLES.values())}"
        ) from error
    except OSError as error:
        raise NotConfigured(f"{path} cannot be read: {error.strerror}") from error
    except (ValueError, KeyError, TypeError, RecursionError, NotConfigured):
        raise NotConfigured(
            f"{path} is damaged, it does not hold {', '.join(VARIABLES)}: remove it, and the next"
            " start of the service writes a new one"
        ) from None
