"""Every command in the manual and the README is run, or there is a reason why not.

The `console` blocks of a page are typed in their order, in a scratch folder that has the key of an
account of the page's own, in a shell of 80 columns without a variable of the service. What a page
shows of their output must come, but for ids and times; `…` stands for anything.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import typer.main
import yaml
from _pytest.mark import ParameterSet
from tests.commands import run_command
from tests.manual.pages import PAGES, Command, commands, mentioned, scripts
from tests.stack import COMMAND, Stack, environment

from cirrusmq_client.connection import DATA, FILE
from cirrusmq_local.commands.cli import make_app

NOT_RUN: dict[str, str] = yaml.safe_load(
    Path(__file__).with_name("not_run.yaml").read_text("utf-8")
)
SERVICE = "http://127.0.0.1:8080"
PORTS = re.compile(r"(?<=127\.0\.0\.1:)9\d{3}|(?<=--port )9\d{3}")
VARYING = re.compile(r"Msg-\w+|\d{4}-\d\d-\d\dT[\d:.]+Z|(?<=127\.0\.0\.1:)\d+")
MAKES = re.compile(
    r"cirrusmq (subscribe|queue (create|change|add-receiver)|topic (create|change|pause|resume)) "
)
SHELL = set("|&;<>$`#")
SECONDS = 60


class Terminal:
    """A scratch folder in which a page's commands are typed, in a shell that has nothing but what
    `make up` leaves there: the key, in the folder of its data.
    """

    def __init__(self, folder: Path, url: str, key: tuple[str, str]) -> None:
        self._folder = folder
        self._url = url
        held = dict(zip(("url", "access_key_id", "secret"), (url, *key), strict=True))
        (folder / DATA).mkdir()
        (folder / DATA / FILE).write_text(json.dumps(held), encoding="utf-8")
        path = f"{COMMAND.parent}{os.pathsep}{os.environ['PATH']}"
        self._environment = environment()
        self._environment |= {"PATH": path, "COLUMNS": "80", "NO_COLOR": "1"}
        self._exports = ""
        self._ports: dict[str, str] = {}
        self._beside: list[tuple[subprocess.Popen[bytes], Path]] = []

    def type(self, command: Command) -> None:
        """Run a command, and see that what is shown of it comes."""
        line = PORTS.sub(lambda port: self._port(port[0]), command.line)
        line = line.replace(SERVICE, self._url)
        if line.startswith(("export ", "eval ")):
            self._exports += f"{line}\n"
            return
        if line.endswith(" &"):
            self._start(shlex.split(line.removesuffix(" &")))
            return
        status, out, err = self._run(line)
        assert status == 0, f"{command.line}: {err}"
        ends = time.monotonic() + SECONDS
        while left := self._missing(command.shown, out):
            assert time.monotonic() < ends, f"{command.line} does not print {left} but {out}"
            time.sleep(0.05)

    def close(self) -> None:
        """End what runs beside."""
        for process, _ in self._beside:
            process.terminate()
            process.wait()

    def _run(self, line: str) -> tuple[int, str, str]:
        run: subprocess.CompletedProcess[str]
        if line.startswith("cirrusmq ") and not SHELL & set(line):
            _, *arguments = shlex.split(line)
            run = run_command(arguments, env=self._environment, folder=self._folder)
        else:
            run = subprocess.run(
                ["bash", "-euc", self._exports + line],
                env=self._environment,
                cwd=self._folder,
                capture_output=True,
                text=True,
                timeout=SECONDS,
            )
        return run.returncode, run.stdout, run.stderr

    def _start(self, arguments: list[str]) -> None:
        output = self._folder / f"beside-{len(self._beside)}"
        with output.open("w") as file:
            process = subprocess.Popen(
                [COMMAND.with_name(arguments[0]), *arguments[1:]],
                env=self._environment | {"PYTHONUNBUFFERED": "1"},
                cwd=self._folder,
                stdout=file,
            )
        self._beside.append((process, output))
        port = arguments[arguments.index("--port") + 1]
        ends = time.monotonic() + SECONDS
        while not _answers(int(port)):
            assert time.monotonic() < ends, "it does not listen"
            time.sleep(0.02)

    def _port(self, named: str) -> str:
        if named not in self._ports:
            with socket.create_server(("127.0.0.1", 0)) as free:
                self._ports[named] = str(free.getsockname()[1])
        return self._ports[named]

    def _missing(self, shown: tuple[str, ...], out: str) -> list[str]:
        """The lines that are shown and did not come, from the command or from what runs beside."""
        came = [*out.splitlines()]
        came += [line for _, path in self._beside for line in path.read_text().splitlines()]
        left = [VARYING.sub("*", line) for line in came]
        missing = []
        for line in shown:
            pattern = re.escape(VARYING.sub("*", line)).replace("…", ".*")
            found = next((each for each in left if re.fullmatch(pattern, each)), None)
            if found is None:
                missing.append(line)
            else:
                left.remove(found)
        return missing


def _answers(port: int) -> bool:
    with socket.socket() as asking:
        return asking.connect_ex(("127.0.0.1", port)) == 0


@pytest.fixture
def terminal(shared_stack: Stack, tmp_path: Path) -> Iterator[Callable[[str], Terminal]]:
    opened: list[Terminal] = []

    def open_for(page: str) -> Terminal:
        admin = shared_stack.client()
        made = admin.post("/keys", json={"account": f"manual-{page}", "admin": True}).json()
        key = (made["access_key_id"], made["secret"])
        opened.append(Terminal(tmp_path, shared_stack.url, key))
        return opened[-1]

    yield open_for
    for each in opened:
        each.close()


def _typed() -> Iterator[ParameterSet]:
    """The pages with commands; those of guides, which wait most, are typed by the long checks."""
    for page in filter(commands, PAGES):
        guide = page.stem.startswith(("how-to-", "coming-from-"))
        yield pytest.param(page, marks=pytest.mark.long if guide else ())


@pytest.mark.parametrize("page", [*_typed()], ids=lambda page: page.stem)
def test_a_pages_commands_give_the_shown_output(
    page: Path, terminal: Callable[[str], Terminal]
) -> None:
    typing = terminal(page.stem.lower())
    for command in commands(page):
        typing.type(command)


def test_pages_show_the_output_of_each_creation() -> None:
    silent = [
        (page.name, command.line)
        for page in PAGES
        for command in commands(page)
        if MAKES.match(command.line) and not command.shown and "--json" not in command.line
    ]

    assert silent == []


def test_commands_not_run_have_a_reason() -> None:
    lines = [(page.name, line) for page in PAGES for line in scripts(page)]
    unknown = [
        (page, line) for page, line in lines if not any(line.startswith(known) for known in NOT_RUN)
    ]
    assert unknown == []
    for known in NOT_RUN:
        assert any(line.startswith(known) for _, line in lines), f"{known} is on no page"


@pytest.fixture(scope="module")
def command_line() -> Any:
    """Click's command of the whole, with those below it."""
    return typer.main.get_command(make_app())


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_commands_are_those_of_the_command_line(page: Path, command_line: Any) -> None:
    for line in mentioned(page):
        command = command_line
        words = re.split(r"[\s#]+", line)[1:]
        while words and words[0] in getattr(command, "commands", {}):
            command = command.commands[words.pop(0)]
        whole = not words or not hasattr(command, "commands") or words[0].startswith("-")
        assert whole or words[0] == "…", f"{line}: there is no {words[0]}"
        known = {option for each in command.params for option in (*each.opts, *each.secondary_opts)}
        known |= {"--help", "--install-completion"}
        for word in words:
            if re.fullmatch(r"--[a-z-]+", word):
                assert word in known, f"{line}: there is no {word}"
