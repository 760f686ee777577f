"""`cirrusmq env`: the URL and the key as variables, for a shell, a file, Docker or GitHub."""

from __future__ import annotations

import os
import shlex
import sys
from pathlib import Path
from typing import Annotated, Literal
from urllib.parse import urlsplit

import typer

from cirrusmq_client import find_connection
from cirrusmq_client.connection import FILE, OPTIONAL, VARIABLES
from cirrusmq_client.errors import NotConfigured
from cirrusmq_local.commands.arguments import DATA, Data
from cirrusmq_local.commands.console import fail

_SDKS = {
    "sqs": {
        "AWS_ENDPOINT_URL_SQS": "url",
        "AWS_ENDPOINT_URL_SNS": "url",
        "AWS_ACCESS_KEY_ID": "access_key_id",
        "AWS_SECRET_ACCESS_KEY": "secret",
    },
    "cmq": {"CMQ_ENDPOINT": "url", "SECRET_ID": "access_key_id", "SECRET_KEY": "secret"},
    "emq": {"EMQ_ENDPOINT": "url", "SECRET_ID": "access_key_id", "SECRET_KEY": "secret"},
    "rocketmq": {"MQ_ENDPOINT": "url", "ACCESS_KEY": "access_key_id", "SECRET_KEY": "secret"},
}
"""Variables that a program for another service reads, by its own names; SNS is beside SQS."""
_BESIDE = {"sqs": {"AWS_DEFAULT_REGION": "eu-central-1"}}
"""Region for AWS SDKs, which need one; any value works."""
_HOST = "host.docker.internal"
"""Docker's name for the machine itself, inside a container."""
_LOOPBACK = ("localhost", "127.0.0.1", "::1")


def env(
    program: Annotated[
        Literal["cirrusmq", "sqs", "cmq", "emq", "rocketmq"],
        typer.Argument(help="The reader: this library, or a program for another service."),
    ] = "cirrusmq",
    target: Annotated[
        Literal["shell", "dotenv", "docker", "github"],
        typer.Option("--for", help="The form of the output: see above."),
    ] = "shell",
    data: Data = DATA,
) -> None:
    """Print the service's URL and key as variables, with the secret.

    shell: eval "$(cirrusmq env)". dotenv: cirrusmq env --for dotenv > .env. docker: a file for
    docker run --env-file, in which the machine itself is host.docker.internal. github: in a step
    of a workflow, cirrusmq env --for github >> "$GITHUB_ENV".
    """
    try:
        values = _of_library(data) if program == "cirrusmq" else _of_sdk(program, data)
    except NotConfigured as error:
        fail(str(error))
    if target == "docker":
        values = {name: _within_a_container(value) for name, value in values.items()}
    if target == "github" and "GITHUB_ACTIONS" in os.environ:
        for name in values:
            if "SECRET" in name:  # the runner reads it, and then masks the value in its log
                print(f"::add-mask::{values[name]}", file=sys.stderr, flush=True)
    lines = [f"{name}={value}" for name, value in values.items()]
    if target == "shell":
        lines = [f"export {name}={shlex.quote(value)}" for name, value in values.items()]
        if sys.stdout.isatty():
            typed = "cirrusmq env" if program == "cirrusmq" else f"cirrusmq env {program}"
            lines.append(f'# To set them in this shell: eval "$({typed})"')
    print("\n".join(lines), flush=True)


def _of_library(data: Path) -> dict[str, str]:
    found = find_connection(data)
    named = {variable: getattr(found, name) for name, variable in (VARIABLES | OPTIONAL).items()}
    return {variable: value for variable, value in named.items() if value is not None}


def _of_sdk(program: str, data: Path) -> dict[str, str]:
    """Return the variables for another service's SDK, from the service's data folder."""
    # A module of the service: other commands start faster without it.
    from cirrusmq_local.engine.data_errors import DataError
    from cirrusmq_local.stack.data import read_connection

    path = data / FILE
    try:
        found = read_connection(path)
    except DataError as error:
        fail(str(error))
    if found is None or "dialect_url" not in found or "signing_key" not in found:
        fail(
            f"{path} has no endpoint for other services' SDKs",
            "start the service on this machine first: cirrusmq up",
        )
    values = found["signing_key"] | {"url": found["dialect_url"]}
    named = {variable: str(values[name]) for variable, name in _SDKS[program].items()}
    return named | _BESIDE.get(program, {})


def _within_a_container(value: str) -> str:
    """Return a URL of this machine for a program in a container; other values unchanged."""
    parts = urlsplit(value) if value.startswith("http") else urlsplit("")
    if parts.hostname not in _LOOPBACK:
        return value
    port = "" if parts.port is None else f":{parts.port}"
    return parts._replace(netloc=f"{_HOST}{port}").geturl()
