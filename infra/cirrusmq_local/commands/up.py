"""`cirrusmq up`: the whole service on one machine, until it is ended."""

from __future__ import annotations

import faulthandler
import os
import sys
import threading
from pathlib import Path
from typing import Annotated, Literal

import typer

from cirrusmq_local.commands import background
from cirrusmq_local.commands.console import fail, tell
from cirrusmq_local.commands.definitions import make_definitions, read_definitions
from cirrusmq_local.commands.signals import Ending

# The store is durable at each answer, so no data is lost if the end takes longer than this.
END_SECONDS = 15.0


def up(
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="Port; 0 chooses a free one.", min=0, max=65535)] = 8080,
    data: Annotated[Path, typer.Option(help="Folder for all data.", readable=False)] = Path(
        ".local"
    ),
    time_scale: Annotated[
        float, typer.Option(help="How much faster than real time the service's clock runs.", min=1)
    ] = 1.0,
    environments: Annotated[
        Literal["shared", "cloud"],
        typer.Option(
            help="shared: functions share caches; cloud: each has its own, as in the cloud."
        ),
    ] = "shared",
    direct_urls: Annotated[
        bool, typer.Option("--direct-urls", help="Functions also have their own URLs.")
    ] = False,
    dialect_port: Annotated[
        int | None,
        typer.Option(
            help="Port for the SDKs of other services (CMQ, EMQ, RocketMQ over HTTP, SQS); 0: none;"
            " without it --port + 1.",
            min=0,
            max=65535,
        ),
    ] = None,
    stand_in: Annotated[
        bool,
        typer.Option(
            "--stand-in",
            envvar="CIRRUSMQ_STAND_IN",
            help="In the place of an emulator of AWS, for tests: SDKs are answered at port 4566,"
            " and the key with the id test and the secret test is good.",
        ),
    ] = False,
    function: Annotated[
        list[str] | None,
        typer.Option(
            help="name=module:callable: queues may name it in their attribute invoke, and it gets"
            " their messages as a Lambda function does. May be repeated."
        ),
    ] = None,
    definitions: Annotated[
        Path | None,
        typer.Option(help="File of queues and topics to make before it is ready.", dir_okay=False),
    ] = None,
    wait: Annotated[
        bool,
        typer.Option(
            "--wait", help="Start the service in the background; return when it is ready."
        ),
    ] = False,
    ready_fd: Annotated[int | None, typer.Option(background.READY_FD, hidden=True)] = None,
) -> None:
    """Start the whole service on this machine."""
    if wait:
        background.start([each for each in sys.argv[1:] if each != "--wait"], data)
        return
    declared = None if definitions is None else read_definitions(definitions)
    # The stack takes longer to import than most commands to run.
    from cirrusmq_local.cloud.cloudformation import TemplateError
    from cirrusmq_local.cloud.own_functions import OwnFunctionError, load_own
    from cirrusmq_local.engine.data_errors import DataError
    from cirrusmq_local.stack.server import AddressError
    from cirrusmq_local.stack.stack import Stack

    # Prints a traceback if a compiled library crashes.
    faulthandler.enable()
    ending = Ending()
    # The stack uses standard output for the functions' logs.
    console = sys.stdout
    try:
        stack = Stack(
            data,
            host=host,
            port=port,
            scale=time_scale,
            environments=environments,
            own_functions=load_own(function or []),
            direct_urls=direct_urls,
            dialect_port=dialect_port,
            stand_in=stand_in,
            tell=tell,
            give_up=ending.give_up,
        )
        stack.start()
    except (DataError, AddressError, OwnFunctionError) as error:
        fail(str(error))
    except TemplateError as error:
        fail(f"template.yaml: {error}")
    if definitions is not None and declared is not None:
        try:
            make_definitions(definitions, declared, data)
        except SystemExit:
            stack.stop()
            raise
    print(f"ready {stack.url}", file=console, flush=True)
    if stack.dialect_url is not None:
        print(f"dialects {stack.dialect_url}", file=console, flush=True)
    print(f"console {stack.url}/console", file=console)
    print(f"manual {stack.url}/docs", file=console)
    print(f"key {stack.connection_file}", file=console, flush=True)
    background.tell_ready(ready_fd)
    reason = ending.wait()
    watchdog = threading.Timer(END_SECONDS, os._exit, args=(0 if reason is None else 1,))
    watchdog.daemon = True
    watchdog.start()
    stack.stop()
    if reason is not None:
        fail(reason)
