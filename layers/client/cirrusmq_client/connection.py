"""The service's URL and an access key: from the environment, else from the service's folder."""

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
    """A service and a key. Blanks and line ends around a value are left out; NotConfigured.

    - `ca_file`: certificates in PEM of a private authority, which is trusted besides the others.
    - `proxy`: the URL of a proxy, `http://user:password@proxy.example:3128`; None goes straight.
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
        """The header that shows the key."""
        return f"Bearer {self.access_key_id}:{self.secret}"


def find_connection(
    data: Path | str = DATA, environment: Mapping[str, str] = os.environ
) -> Connection:
    """The connection that the environment names, else the one in `<data>/connection.json`.

    With CIRRUSMQ_CA_FILE and CIRRUSMQ_PROXY in both. Raises NotConfigured.
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
    """The values that are set, by field, each checked under its variable's name."""
    return {
        name: _checked(variable, held)
        for name, variable in variables.items()
        if (held := environment.get(variable, "").strip())
    }


def _checked(name: str, value: object) -> str:
    """The value without blanks around it. NotConfigured names it, and never shows it."""
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
    """NotConfigured, which does not show the text: somebody may have put the secret here."""
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
    """Whether a header takes the character, or a URL; a path takes any."""
    if name in _HEADERS:
        return "!" <= character <= "~"
    return name in _PATHS or (character.isprintable() and character != " ")


def read_connection(path: Path) -> Connection:
    """The connection in a file; NotConfigured where it holds none."""
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
